/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file binding.h
 * @brief Internal: one table per record that says which Avro field is which member of which C
 * struct, and its bounds. Reader and writer are driven by it; there is no code per field.
 */
#ifndef PAY_CONTRACTS_BINDING_H
#define PAY_CONTRACTS_BINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pay_bind_kind {
    PAY_BIND_TEXT,   /**< struct pay_str */
    PAY_BIND_BYTES,  /**< struct pay_bytes */
    PAY_BIND_CHARS,  /**< char[max + 1], "" is absent. */
    PAY_BIND_BOOL,   /**< bool */
    PAY_BIND_FLAG,   /**< int: 0, 1, and -1 for null. */
    PAY_BIND_INT,    /**< int */
    PAY_BIND_LONG,   /**< int64_t */
    PAY_BIND_ENUM,   /**< An enum whose values follow the current schema's symbols from first. */
    PAY_BIND_SYMBOL, /**< struct pay_str that holds an enum's symbol. */
    PAY_BIND_RECORD, /**< A struct inside the struct. */
    PAY_BIND_ARRAY,  /**< Items inline (is_inline) or behind a pointer, and a count. */
    PAY_BIND_MAP,    /**< As an array of structs that hold key and value. */
    PAY_BIND_KIND_COUNT
};

/** How the C struct says that an optional field is there. */
enum pay_bind_here {
    PAY_HERE_ALWAYS, /**< Not optional. */
    PAY_HERE_VALUE,  /**< By its own value: pointer NULL, "" or the number @c null_value is absent.
                      */
    PAY_HERE_BOOL,   /**< bool at here_offset. */
    PAY_HERE_PTR,    /**< Pointer at here_offset is not NULL. */
    PAY_HERE_KIND,   /**< Bit number <enum at here_offset> of kind_mask is set. */
    PAY_HERE_COUNT
};

enum pay_text_rule {
    PAY_RULE_NONE,     /**< UTF-8 without NUL, as every text. */
    PAY_RULE_CODE,     /**< [A-Za-z0-9_.-] */
    PAY_RULE_CURRENCY, /**< [A-Z]{3} */
    PAY_RULE_TRACE,    /**< traceparent; a bad one is dropped, never a reason to refuse a fact. */
    PAY_RULE_COUNT
};

struct pay_bind_record;

struct pay_bind {
    const char *name; /**< Avro field. */
    enum pay_bind_kind kind;
    enum pay_bind_here here;
    enum pay_text_rule rule;
    bool may_lack;  /**< The writer's schema may lack it: by_default, "" or no items then. */
    bool is_inline; /**< ARRAY */
    size_t offset;
    size_t here_offset;
    size_t count_offset; /**< ARRAY, MAP: of a size_t. */
    size_t item_size;    /**< ARRAY, MAP */
    uint32_t kind_mask;
    int64_t min; /**< Bytes of text, value of a number, items of an array. */
    int64_t max;
    int64_t null_value; /**< Numbers with HERE_VALUE: what null is. */
    int64_t by_default; /**< Numbers and enums (as C value): what a missing field is. */
    int64_t first;      /**< ENUM: C value of the first symbol. */
    int64_t fallback;   /**< ENUM, SYMBOL: index of the current schema's default symbol. */
    const struct pay_bind_record *record; /**< RECORD */
    const struct pay_bind *item; /**< ARRAY, MAP: an item, at offset 0 of item_size bytes. */
    const struct pay_bind *key;  /**< MAP: the key, inside an item. */
};

struct pay_bind_record {
    const struct pay_bind *fields;
    size_t count;
};

#define PAY_FIELD_COUNT(fields_) (sizeof(fields_) / sizeof((fields_)[0]))

/* Rows. What stands last may be followed by more initialisers. */
#define PAY_ROW(kind_, name_, type_, member_, ...) \
    {.name = (name_), .kind = (kind_), .offset = offsetof(type_, member_), __VA_ARGS__}
/** name, type, member, min, max: text of min to max bytes. */
#define PAY_TEXT(name_, type_, member_, min_, ...) \
    PAY_ROW(PAY_BIND_TEXT, name_, type_, member_, .min = (min_), .max = __VA_ARGS__)
#define PAY_BYTES(name_, type_, member_, min_, ...) \
    PAY_ROW(PAY_BIND_BYTES, name_, type_, member_, .min = (min_), .max = __VA_ARGS__)
#define PAY_LONG(name_, type_, member_, min_, ...) \
    PAY_ROW(PAY_BIND_LONG, name_, type_, member_, .min = (min_), .max = __VA_ARGS__)
#define PAY_INT(name_, type_, member_, min_, ...) \
    PAY_ROW(PAY_BIND_INT, name_, type_, member_, .min = (min_), .max = __VA_ARGS__)
#define PAY_TIME(name_, type_, member_) PAY_LONG(name_, type_, member_, 0, INT64_MAX)
#define PAY_TIME_OPTIONAL(name_, type_, member_) \
    PAY_LONG(name_, type_, member_, 0, INT64_MAX, PAY_OPTIONAL)
#define PAY_CURRENCY(type_, member_)                                        \
    PAY_ROW(PAY_BIND_CHARS, "currency", type_, member_, .min = 3, .max = 3, \
            .rule = PAY_RULE_CURRENCY)
#define PAY_CURRENCY_OPTIONAL(type_, member_)                               \
    PAY_ROW(PAY_BIND_CHARS, "currency", type_, member_, .min = 3, .max = 3, \
            .rule = PAY_RULE_CURRENCY, PAY_OPTIONAL)
#define PAY_BOOL(name_, type_, member_, default_)                             \
    PAY_ROW(PAY_BIND_BOOL, name_, type_, member_, .max = 1, .may_lack = true, \
            .by_default = (default_))
/** name, type, member, index of the default symbol. */
#define PAY_ENUM(name_, type_, member_, ...) \
    PAY_ROW(PAY_BIND_ENUM, name_, type_, member_, .fallback = __VA_ARGS__)
#define PAY_PART(name_, type_, member_, ...) \
    PAY_ROW(PAY_BIND_RECORD, name_, type_, member_, .record = __VA_ARGS__)
/** A part whose members are found from the same base: the C struct has no struct for it. */
#define PAY_FLAT(name_, ...) {.name = (name_), .kind = PAY_BIND_RECORD, .record = __VA_ARGS__}
/** Array behind a pointer: name, type, member, count's member, item's type, item, max. */
#define PAY_LIST(name_, type_, member_, count_, item_type_, item_, ...)                     \
    PAY_ROW(PAY_BIND_ARRAY, name_, type_, member_, .count_offset = offsetof(type_, count_), \
            .item_size = sizeof(item_type_), .item = (item_), .max = __VA_ARGS__)
/** Array inside the struct: name, type, member, count's member, item. */
#define PAY_INLINE(name_, type_, member_, count_, ...)                                      \
    PAY_ROW(PAY_BIND_ARRAY, name_, type_, member_, .count_offset = offsetof(type_, count_), \
            .item_size = sizeof(((type_ *)0)->member_[0]), .is_inline = true,               \
            .max = sizeof(((type_ *)0)->member_) / sizeof(((type_ *)0)->member_[0]),        \
            .item = __VA_ARGS__)

#define PAY_OPTIONAL .here = PAY_HERE_VALUE
#define PAY_IF_BOOL(type_, member_) .here = PAY_HERE_BOOL, .here_offset = offsetof(type_, member_)
#define PAY_IF_PTR(type_, member_) .here = PAY_HERE_PTR, .here_offset = offsetof(type_, member_)
#define PAY_IF_KIND(type_, member_, mask_) \
    .here = PAY_HERE_KIND, .here_offset = offsetof(type_, member_), .kind_mask = (uint32_t)(mask_)
#define PAY_TRACEPARENT(type_) \
    PAY_TEXT("traceparent", type_, traceparent, 0, 55, PAY_OPTIONAL, .rule = PAY_RULE_TRACE)

/* Parts that several records have. */
extern const struct pay_bind_record pay_bind_sealed;
extern const struct pay_bind_record pay_bind_settlement;
extern const struct pay_bind_record pay_bind_action;
extern const struct pay_bind_record pay_bind_dispute;
extern const struct pay_bind pay_item_sealed;
extern const struct pay_bind pay_item_reference;

/* The records. */
extern const struct pay_bind_record pay_bind_raw_notification;
extern const struct pay_bind_record pay_bind_command;
extern const struct pay_bind_record pay_bind_command_secrets;
extern const struct pay_bind_record pay_bind_payment_input;
extern const struct pay_bind_record pay_bind_psp_job;
extern const struct pay_bind_record pay_bind_payment_event;
extern const struct pay_bind_record pay_bind_dead_letter;

#endif /* PAY_CONTRACTS_BINDING_H */
