/* SPDX-License-Identifier: Apache-2.0 */
/** @file stripe_internal.h @brief Shared by the stripe_*.c files alone. */
#ifndef PAY_PSP_STRIPE_INTERNAL_H
#define PAY_PSP_STRIPE_INTERNAL_H

#include "common/json/json.h"
#include "common/psp/amount.h"
#include "common/psp/stripe.h"

#define PAY_STRIPE_ID_MAX 190 /**< Bytes; "<event id>:1" must fit a transport key's 200. */

extern const struct pay_psp_currency pay_stripe_currencies[];

/** What one object of Stripe's says about the payment. */
enum pay_stripe_fact {
    PAY_STRIPE_ACT,
    PAY_STRIPE_PRC,
    PAY_STRIPE_AUT,
    PAY_STRIPE_SUC, /**< Of an intent with manual capture: a capture's success. */
    PAY_STRIPE_DEC,
    PAY_STRIPE_CAN,
    PAY_STRIPE_CAPTURED, /**< A charge that was held before. */
    PAY_STRIPE_EXPIRED,  /**< An authorization lapsed. */
    PAY_STRIPE_FACT_COUNT
};

/** Where objects are turned into items: who says it, and what came out so far. */
struct pay_stripe_scene {
    const struct pay_psp_account *account;
    struct pay_arena *arena;
    enum pay_source source;
    struct pay_str transport_key; /**< Of the first item; the next get a suffix. */
    int64_t occurred_at_us;
    struct pay_str type_name; /**< Stripe's own name of the event; absent in answers. */
    struct pay_call call;
    bool with_action;                   /**< Hand the customer's next step over. */
    const struct pay_json_value *error; /**< Of a refused call: codes for a decline. */
    struct pay_psp_item *items;
    size_t count, cap;
    enum pay_psp_reason reason; /**< First thing that was wrong; OK so far. */
};

/** @return false: the arena is full. */
bool pay_stripe_scene_init(struct pay_stripe_scene *scene, size_t cap);

/* Each appends items and returns false when the object cannot be understood (scene->reason). */
bool pay_stripe_intent(struct pay_stripe_scene *scene, const struct pay_json_value *intent,
                       enum pay_stripe_fact fact);
/** By the intent's own status, for answers. */
bool pay_stripe_intent_now(struct pay_stripe_scene *scene, const struct pay_json_value *intent);
bool pay_stripe_charge(struct pay_stripe_scene *scene, const struct pay_json_value *charge,
                       enum pay_stripe_fact fact);
/** What a charge that was paid back, wholly or in part, proves: the money was taken. Nothing where
 * it was only held. */
bool pay_stripe_paid_charge(struct pay_stripe_scene *scene, const struct pay_json_value *charge);
/** What of charge.amount_refunded was paid back, as a sum; nothing where that is nothing. */
bool pay_stripe_refund_sum(struct pay_stripe_scene *scene, const struct pay_json_value *charge);
/** A refund; OTHER where it only says that held money was released. */
bool pay_stripe_refund(struct pay_stripe_scene *scene, const struct pay_json_value *refund);
bool pay_stripe_dispute(struct pay_stripe_scene *scene, const struct pay_json_value *dispute,
                        enum pay_event_type type);
bool pay_stripe_session(struct pay_stripe_scene *scene, const struct pay_json_value *session,
                        enum pay_stripe_fact fact);
/** Kept, decides nothing. @p object may be NULL. */
bool pay_stripe_other(struct pay_stripe_scene *scene, const struct pay_json_value *object);

/** The id in a field that holds an id or, expanded, the object itself. Not copied; absent unless it
 * is 1..PAY_STRIPE_ID_MAX of [A-Za-z0-9_]. */
struct pay_str pay_stripe_id(const struct pay_json_value *value);
/** @return an event with account, call, type and names set. */
struct pay_event pay_stripe_event(const struct pay_stripe_scene *scene, enum pay_event_type type);
/** Append; sets keys. @return false: arena or cap. */
bool pay_stripe_push(struct pay_stripe_scene *scene, const struct pay_event *event);
/** Copy into the arena; a failure is scene->reason. */
struct pay_str pay_stripe_keep(struct pay_stripe_scene *scene, struct pay_str text);
/** The id in a member, kept; absent: none. */
struct pay_str pay_stripe_keep_id(struct pay_stripe_scene *scene,
                                  const struct pay_json_value *object, const char *name);
/** metadata.<name>, kept; cut to what a column holds: a cut one is no number of ours. */
struct pay_str pay_stripe_keep_number(struct pay_stripe_scene *scene,
                                      const struct pay_json_value *object, const char *name);
/** A code of Stripe's, kept; absent where it is none. */
struct pay_str pay_stripe_keep_code(struct pay_stripe_scene *scene, struct pay_str text);
/** Seconds since 1970 to microseconds; 0: not said. */
int64_t pay_stripe_time_us(const struct pay_json_value *value);
void pay_stripe_add_reference(struct pay_event *event, enum pay_reference_kind kind,
                              struct pay_str reference);
/** The amount in a member, exactly; a foreign one that does not convert becomes OTHER. */
bool pay_stripe_set_amount(struct pay_stripe_scene *scene, const struct pay_json_value *object,
                           const char *field, struct pay_event *event);
bool pay_stripe_convert_amount(struct pay_stripe_scene *scene, int64_t amount,
                               struct pay_str currency, struct pay_event *event);
/** error.code, error.decline_code. */
void pay_stripe_set_failure(struct pay_stripe_scene *scene, const struct pay_json_value *error,
                            struct pay_event *event);
/** code, decline_code to failure class and failure code. */
void pay_stripe_failure(struct pay_stripe_scene *scene, struct pay_str code,
                        struct pay_str decline_code, struct pay_event *event);
bool pay_stripe_fail(struct pay_stripe_scene *scene, enum pay_psp_reason reason);

enum pay_status pay_stripe_parse(const struct pay_psp_account *account,
                                 const struct pay_psp_notification *raw, struct pay_arena *arena,
                                 struct pay_psp_items *ret_items, struct pay_err *err);
enum pay_query_by pay_stripe_choose_query(const struct pay_psp_request_job *job);
enum pay_status pay_stripe_build(const struct pay_psp_account *account,
                                 const struct pay_psp_request_job *job, enum pay_query_by query_by,
                                 struct pay_arena *arena, struct pay_psp_request *ret_request,
                                 struct pay_err *err);
enum pay_status pay_stripe_read(const struct pay_psp_account *account,
                                const struct pay_psp_response *response, struct pay_arena *arena,
                                struct pay_psp_reading *ret_reading, struct pay_err *err);
/** The attempt's intent id; absent when none is bound. */
struct pay_str pay_stripe_job_intent(const struct pay_psp_request_job *job);
extern const char *const pay_stripe_extra_names[];

#endif /* PAY_PSP_STRIPE_INTERNAL_H */
