/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/admin.h"

#include "common/base/mem.h"
#include "common/io/http_server/http_server.h"

#include "common/base/banned.h"

#define CONNECTIONS_MAX 64
#define BODY_BYTES_MAX 1024 /* Of a request: none is expected. */

struct pay_admin {
    struct pay_admin_options opts;
    struct pay_http_server *server;
};

static unsigned metrics(struct pay_admin *admin, struct pay_buf *out)
{
    pay_metrics_print(admin->opts.metrics, out);
    return 200;
}

static unsigned healthz(struct pay_admin *admin, struct pay_buf *out)
{
    return pay_health_live(admin->opts.health, out) ? 200 : 503;
}

static unsigned readyz(struct pay_admin *admin, struct pay_buf *out)
{
    const bool draining = admin->opts.draining != NULL && admin->opts.draining(admin->opts.ctx);

    return pay_health_ready(admin->opts.health, draining, out) ? 200 : 503;
}

struct page {
    const char *path;
    const char *content_type;
    unsigned (*print)(struct pay_admin *admin, struct pay_buf *out);
};

static const struct page pages[] = {
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", metrics},
    {"/healthz", "application/json", healthz},
    {"/readyz", "application/json", readyz},
};

static const struct page *page_of(struct pay_str path)
{
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        if (pay_str_eq_c(path, pages[i].path)) {
            return &pages[i];
        }
    }
    return NULL;
}

static bool only_known(void *ctx, const struct pay_http_view *view,
                       struct pay_http_answer *ret_answer)
{
    static const struct pay_http_header allow = {{"Allow", 5}, {"GET, HEAD", 9}};

    (void)ctx;
    if (page_of(view->path) == NULL) {
        *ret_answer = (struct pay_http_answer){.status = 404};
        return false;
    }
    if (!pay_str_eq_c(view->method, "GET") && !pay_str_eq_c(view->method, "HEAD")) {
        *ret_answer = (struct pay_http_answer){.status = 405, .headers = &allow, .header_count = 1};
        return false;
    }
    return true;
}

static void handle(void *ctx, struct pay_http_request *req, const struct pay_http_view *view)
{
    struct pay_buf body = pay_buf_make(PAY_ADMIN_BODY_BYTES_MAX);
    const struct page *page = page_of(view->path);
    unsigned status = page->print(ctx, &body);

    if (body.failed) {
        pay_buf_reset(&body);
        status = 500;
    }
    (void)pay_http_request_answer(req, &(struct pay_http_answer){/* Late is late: nobody waits. */
                                                                 .status = status,
                                                                 .content_type = page->content_type,
                                                                 .body = pay_buf_bytes(&body)});
    pay_buf_free(&body);
}

enum pay_status pay_admin_start(const struct pay_admin_options *opts, struct pay_admin **ret_admin,
                                struct pay_err *err)
{
    struct pay_admin *admin = pay_mem_new(1, sizeof *admin);

    if (admin == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "start admin port", "out of memory");
    }
    admin->opts = *opts;
    const struct pay_http_server_options server = {.bind = opts->bind,
                                                   .port = opts->port,
                                                   .connections_max = CONNECTIONS_MAX,
                                                   .body_bytes_max = BODY_BYTES_MAX,
                                                   .head = only_known,
                                                   .handler = handle,
                                                   .ctx = admin};
    const enum pay_status status = pay_http_server_start(&server, &admin->server, err);
    if (status != PAY_OK) {
        (void)pay_mem_free(admin);
        return status;
    }
    *ret_admin = admin;
    return PAY_OK;
}

uint16_t pay_admin_port(const struct pay_admin *admin)
{
    return pay_http_server_port(admin->server);
}

struct pay_admin *pay_admin_stop(struct pay_admin *admin)
{
    if (admin != NULL) {
        admin->server = pay_http_server_stop(admin->server);
    }
    return pay_mem_free(admin);
}
