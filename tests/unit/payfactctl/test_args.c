/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: what a person typed is taken as meant or refused with the word that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <string.h>

#include "tools/payfactctl/args.h"

struct options {
    const char *text;
    const char *first;
    const char *second;
    int64_t number;
    bool flag;
    struct pay_arg_list list;
};

#define AT(field) offsetof(struct options, field)
static const struct pay_arg rows[] = {
    {"--text", PAY_ARG_TEXT, AT(text), 0, 0, "T", false, "a text"},
    {"--number", PAY_ARG_INT, AT(number), -1, 9, "N", false, "a number"},
    {"--flag", PAY_ARG_FLAG, AT(flag), 0, 0, NULL, false, "a flag"},
    {"--item", PAY_ARG_LIST, AT(list), 0, 0, "I", false, "an item"},
    {"FIRST", PAY_ARG_OPERAND, AT(first), 0, 0, NULL, true, "needed"},
    {"SECOND", PAY_ARG_OPERAND, AT(second), 0, 0, NULL, false, "not needed"},
};
static const struct pay_arg_table table = {rows, sizeof rows / sizeof rows[0]};

#define WORDS_MAX 40

static enum pay_status read_words(const char *const *words, struct options *ret_options,
                                  struct pay_err *err)
{
    static char copies[WORDS_MAX][64];
    char *argv[WORDS_MAX];
    int argc = 0;
    while (words[argc] != NULL) {
        assert_true(pay_str_copy(copies[argc], sizeof copies[argc], pay_str_of(words[argc])));
        argv[argc] = copies[argc];
        argc++;
    }
    memset(ret_options, 0, sizeof *ret_options);
    return pay_args_read(&table, argc, argv, ret_options, err);
}

#define READ(...) read_words((const char *const[]){__VA_ARGS__, NULL}, &options, &err)

static void takes_both_forms_in_any_order(void **state)
{
    (void)state;
    struct options options;
    struct pay_err err = {0};
    assert_int_equal(READ("a", "--text", "x=1", "--number=7", "--flag", "b"), PAY_OK);
    assert_string_equal(options.first, "a");
    assert_string_equal(options.second, "b");
    assert_string_equal(options.text, "x=1");
    assert_int_equal(options.number, 7);
    assert_true(options.flag);
    assert_int_equal(READ("--text=", "a"), PAY_OK);
    assert_string_equal(options.text, "");
    assert_int_equal(options.number, -1);
    assert_false(options.flag);
    assert_null(options.second);
    assert_int_equal(READ("--text", "--flag", "a"), PAY_OK); /* a value may look like an option */
    assert_string_equal(options.text, "--flag");
}

static void a_list_keeps_its_order_up_to_its_maximum(void **state)
{
    (void)state;
    struct options options;
    struct pay_err err = {0};
    const char *words[WORDS_MAX] = {"a"};
    for (size_t i = 0; i <= PAY_ARG_LIST_MAX; i++) {
        words[1 + i] = i == 1 ? "--item=second" : "--item=other";
    }
    assert_int_equal(read_words(words, &options, &err), PAY_REJECT);
    assert_non_null(strstr(err.text, "--item is given more than 16 times"));
    words[1 + PAY_ARG_LIST_MAX] = NULL;
    assert_int_equal(read_words(words, &options, &err), PAY_OK);
    assert_int_equal(options.list.count, PAY_ARG_LIST_MAX);
    assert_string_equal(options.list.items[1], "second");
}

static void must_hold(const char *text, const char *says)
{
    if (strstr(text, says) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", text, says);
    }
}

static void every_refusal_names_its_word(void **state)
{
    (void)state;
    static const struct {
        const char *words[4];
        const char *says;
    } cases[] = {
        {{NULL}, "FIRST is missing"},
        {{"a", "--tex", "x"}, "\"--tex\" is not known here"},
        {{"a", "b", "c"}, "\"c\" is not known here"},
        {{"a", "--text"}, "--text takes a value"},
        {{"a", "--flag=1"}, "--flag takes no value"},
        {{"a", "--flag", "--flag"}, "--flag is given twice"},
        {{"a", "--number", "10"}, "--number \"10\" is not a whole number in -1..9"},
        {{"a", "--number", "-2"}, "--number \"-2\" is not a whole number in -1..9"},
        {{"a", "--number", "1x"}, "--number \"1x\" is not a whole number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options options;
        struct pay_err err = {0};
        assert_int_equal(read_words(cases[i].words, &options, &err), PAY_REJECT);
        must_hold(err.text, cases[i].says);
    }
}

static void help_shows_every_row(void **state)
{
    (void)state;
    struct pay_buf out = pay_buf_make(4096);
    pay_args_print(&table, &out);
    const char *text = (const char *)out.data;
    for (size_t i = 0; i < table.count; i++) {
        assert_non_null(strstr(text, rows[i].name));
        assert_non_null(strstr(text, rows[i].doc));
    }
    assert_non_null(strstr(text, "--item I"));
    assert_non_null(strstr(text, "an item (may be repeated)"));
    assert_non_null(strstr(text, "needed (required)"));
    pay_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_both_forms_in_any_order),
        cmocka_unit_test(a_list_keeps_its_order_up_to_its_maximum),
        cmocka_unit_test(every_refusal_names_its_word),
        cmocka_unit_test(help_shows_every_row),
    };
    return cmocka_run_group_tests_name("args", tests, NULL, NULL);
}
