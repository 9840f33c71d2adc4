/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * linux_print.h - printk(), snprintf() and warnings of a file of the Linux kernel. Texts go to the
 * host, if it listens (linux_log); none of them changes what a file decides. Formats are those of
 * Documentation/core-api/printk-formats.rst without what needs a kernel's tables. It must not know
 * TCP.
 */
#ifndef FULLPIPE_CC_LINUX_PRINT_H
#define FULLPIPE_CC_LINUX_PRINT_H

#include "cc_types.h"

/* How often a place may log: always, once, as linux/ratelimit.h limits, each text once. */
enum linux_limit { LINUX_ALWAYS, LINUX_ONCE, LINUX_RATED, LINUX_ONCE_THE_SAME };

/* What hears the log; NULL: nobody. `place` is file and line. */
extern __attribute__((visibility("default"))) void (*linux_log)(u32 limit, const char *place,
								u64 now_ns, const char *text);
__attribute__((visibility("default"))) void (*linux_log)(u32 limit, const char *place, u64 now_ns,
							 const char *text);
/* The module's start runs before every call, and says each thing once. */
static u32 linux_is_starting;

static inline void linux_begin_start(void) { linux_is_starting = 1; }
static inline void linux_end_start(void) { linux_is_starting = 0; }

#define LINUX_TEXT_OF(x) #x
#define LINUX_TEXT(x) LINUX_TEXT_OF(x)
#define LINUX_HERE __FILE__ ":" LINUX_TEXT(__LINE__)
#define LINUX_LINE_BYTES 512

/* Arguments as an array of words: lists of unknown arguments are nothing for an algorithm. */
#define LINUX_WORD(x) (unsigned long)(x),
#define LINUX_W0(...)
#define LINUX_W1(x) LINUX_WORD(x)
#define LINUX_W2(x, ...) LINUX_WORD(x) LINUX_W1(__VA_ARGS__)
#define LINUX_W3(x, ...) LINUX_WORD(x) LINUX_W2(__VA_ARGS__)
#define LINUX_W4(x, ...) LINUX_WORD(x) LINUX_W3(__VA_ARGS__)
#define LINUX_W5(x, ...) LINUX_WORD(x) LINUX_W4(__VA_ARGS__)
#define LINUX_W6(x, ...) LINUX_WORD(x) LINUX_W5(__VA_ARGS__)
#define LINUX_W7(x, ...) LINUX_WORD(x) LINUX_W6(__VA_ARGS__)
#define LINUX_W8(x, ...) LINUX_WORD(x) LINUX_W7(__VA_ARGS__)
#define LINUX_W9(x, ...) LINUX_WORD(x) LINUX_W8(__VA_ARGS__)
#define LINUX_W10(x, ...) LINUX_WORD(x) LINUX_W9(__VA_ARGS__)
#define LINUX_W11(x, ...) LINUX_WORD(x) LINUX_W10(__VA_ARGS__)
#define LINUX_W12(x, ...) LINUX_WORD(x) LINUX_W11(__VA_ARGS__)
#define LINUX_W13(x, ...) LINUX_WORD(x) LINUX_W12(__VA_ARGS__)
#define LINUX_W14(x, ...) LINUX_WORD(x) LINUX_W13(__VA_ARGS__)
#define LINUX_W15(x, ...) LINUX_WORD(x) LINUX_W14(__VA_ARGS__)
#define LINUX_W16(x, ...) LINUX_WORD(x) LINUX_W15(__VA_ARGS__)
#define LINUX_PICK(x, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, name, ...) name
#define LINUX_WORDS(format, ...)                                                                   \
	((const unsigned long[]){                                                                  \
	    LINUX_PICK(0, ##__VA_ARGS__, LINUX_W16, LINUX_W15, LINUX_W14, LINUX_W13, LINUX_W12,    \
		       LINUX_W11, LINUX_W10, LINUX_W9, LINUX_W8, LINUX_W7, LINUX_W6, LINUX_W5,     \
		       LINUX_W4, LINUX_W3, LINUX_W2, LINUX_W1, LINUX_W0, 0)(__VA_ARGS__) 0})

/* Where a text is written to: what does not fit is counted. */
struct linux_text {
	char *to;
	unsigned long bytes, length;
};

static inline void linux_put(struct linux_text *text, char letter)
{
	if (text->length + 1 < text->bytes)
		text->to[text->length] = letter;
	text->length++;
}

/* A conversion: flags, width, precision (-1: none), bytes of the argument. */
struct linux_conversion {
	u32 is_left, has_sign, has_space, has_prefix, has_zeros;
	int width, precision;
	u32 bytes;
};

static inline void linux_pad(struct linux_text *text, int count, char letter)
{
	for (; count > 0; count--)
		linux_put(text, letter);
}

static void linux_put_number(struct linux_text *text, const struct linux_conversion *how, u64 value,
			     u32 base, u32 is_signed, char ten)
{
	char digits[24];
	const char *sign = "";
	int count = 0, zeros, sign_count = 0;

	if (is_signed && (long long)value < 0) {
		sign = "-";
		value = -value;
	} else if (is_signed && (how->has_sign || how->has_space)) {
		sign = how->has_sign ? "+" : " ";
	} else if (how->has_prefix && base != 10) {
		sign = base == 16 ? (ten == 'A' ? "0X" : "0x") : "0";
	}
	for (; value; value /= base) {
		u32 digit = (u32)(value % base);

		digits[count++] = (char)(digit < 10 ? '0' + (int)digit : ten + (int)digit - 10);
	}
	while (sign[sign_count])
		sign_count++;
	zeros = (how->precision < 0 ? 1 : how->precision) - count;
	if (how->has_zeros && !how->is_left && how->precision < 0 &&
	    how->width - sign_count - count > zeros)
		zeros = how->width - sign_count - count;
	if (zeros < 0)
		zeros = 0;
	if (!how->is_left)
		linux_pad(text, how->width - sign_count - zeros - count, ' ');
	for (; *sign; sign++)
		linux_put(text, *sign);
	linux_pad(text, zeros, '0');
	for (zeros += sign_count + count; count > 0;)
		linux_put(text, digits[--count]);
	if (how->is_left)
		linux_pad(text, how->width - zeros, ' ');
}

static void linux_put_string(struct linux_text *text, const struct linux_conversion *how,
			     const char *string)
{
	int length = 0, i;

	if (!string)
		string = "(null)";
	while (string[length] && (how->precision < 0 || length < how->precision))
		length++;
	if (!how->is_left)
		linux_pad(text, how->width - length, ' ');
	for (i = 0; i < length; i++)
		linux_put(text, string[i]);
	if (how->is_left)
		linux_pad(text, how->width - length, ' ');
}

/* %pI4 prints an address, every other %p none: those of a host differ from run to run. */
static const char *linux_put_pointer(struct linux_text *text, const struct linux_conversion *how,
				     unsigned long word, const char *after)
{
	static const struct linux_conversion plain = {.precision = -1};
	int i;

	if ((after[0] == 'I' || after[0] == 'i') && after[1] == '4' && word) {
		for (i = 0; i < 4; i++) {
			if (i)
				linux_put(text, '.');
			linux_put_number(text, &plain, ((const unsigned char *)word)[i], 10, 0,
					 'a');
		}
	} else {
		linux_put_string(text, how, "(____ptrval____)");
	}
	while ((*after >= 'a' && *after <= 'z') || (*after >= 'A' && *after <= 'Z') ||
	       (*after >= '0' && *after <= '9'))
		after++;
	return after;
}

static inline const char *linux_read_int(const char *format, int *number,
					 const unsigned long **words)
{
	*number = 0;
	if (*format == '*') {
		*number = (int)*(*words)++;
		return format + 1;
	}
	for (; *format >= '0' && *format <= '9'; format++)
		*number = 10 * *number + *format - '0';
	return format;
}

static const char *linux_read_conversion(const char *format, struct linux_conversion *how,
					 const unsigned long **words)
{
	*how = (struct linux_conversion){.precision = -1, .bytes = 4};
	for (;; format++) {
		if (*format == '-')
			how->is_left = 1;
		else if (*format == '+')
			how->has_sign = 1;
		else if (*format == ' ')
			how->has_space = 1;
		else if (*format == '#')
			how->has_prefix = 1;
		else if (*format == '0')
			how->has_zeros = 1;
		else
			break;
	}
	format = linux_read_int(format, &how->width, words);
	if (how->width < 0) {
		how->is_left = 1;
		how->width = -how->width;
	}
	if (*format == '.')
		format = linux_read_int(format + 1, &how->precision, words);
	for (;; format++) {
		if (*format == 'h')
			how->bytes /= 2;
		else if (*format == 'l' || *format == 'z' || *format == 't' || *format == 'j')
			how->bytes = 8;
		else
			return format;
	}
}

/* Returns the length that the whole text has, as snprintf() does. */
static __attribute__((unused)) int linux_format(char *to, unsigned long bytes, const char *format,
						const unsigned long *words)
{
	struct linux_text text = {to, bytes, 0};
	struct linux_conversion how;
	u64 value, mask;

	while (*format) {
		if (*format != '%') {
			linux_put(&text, *format++);
			continue;
		}
		format = linux_read_conversion(format + 1, &how, &words);
		if (!*format)
			break;
		mask = how.bytes == 8 ? ~0ull : (1ull << 8 * how.bytes) - 1;
		switch (*format) {
		case 'd':
		case 'i':
			value = *words++ & mask;
			if (value > mask >> 1)
				value |= ~mask;
			linux_put_number(&text, &how, value, 10, 1, 'a');
			break;
		case 'u':
			linux_put_number(&text, &how, *words++ & mask, 10, 0, 'a');
			break;
		case 'o':
			linux_put_number(&text, &how, *words++ & mask, 8, 0, 'a');
			break;
		case 'x':
			linux_put_number(&text, &how, *words++ & mask, 16, 0, 'a');
			break;
		case 'X':
			linux_put_number(&text, &how, *words++ & mask, 16, 0, 'A');
			break;
		case 'c':
			linux_put(&text, (char)*words++);
			break;
		case 's':
			linux_put_string(&text, &how, (const char *)*words++);
			break;
		case 'p':
			format = linux_put_pointer(&text, &how, *words++, format + 1);
			continue;
		default:
			linux_put(&text, *format);
		}
		format++;
	}
	if (bytes)
		to[text.length < bytes ? text.length : bytes - 1] = 0;
	return (int)text.length;
}

/* Not part of its caller, on whose stack each print would have a line of its own. */
#define LINUX_APART __attribute__((cold, __noinline__, unused))

static const char *linux_without_folders(const char *path)
{
	const char *name = path;

	for (; *path; path++)
		if (*path == '/')
			name = path + 1;
	return name;
}

static LINUX_APART int linux_print(u32 limit, const char *place, u64 now_ns, const char *format,
				   const unsigned long *words)
{
	char line[LINUX_LINE_BYTES];

	if (!linux_log)
		return 0;
	linux_format(line, sizeof(line), format, words);
	linux_log(linux_is_starting ? (u32)LINUX_ONCE_THE_SAME : limit, place,
		  linux_is_starting ? 0 : now_ns, line);
	return 0;
}

/* A warning's text, if it has one, and its line; a kernel adds where its processors were. */
static LINUX_APART void linux_warn(u32 limit, const char *place, u64 now_ns, const char *function,
				   const char *format, const unsigned long *words)
{
	char text[LINUX_LINE_BYTES];
	unsigned long length = 0;

	if (!linux_log)
		return;
	linux_format(text, LINUX_LINE_BYTES / 2, format, words);
	while (text[length])
		length++;
	if (length && text[length - 1] != '\n')
		text[length++] = '\n';
	linux_format(text + length, LINUX_LINE_BYTES - length, "WARNING: at %s %s()",
		     LINUX_WORDS(, linux_without_folders(place), function));
	linux_log(limit, place, now_ns, text);
}

#define LINUX_SAY(limit, format, ...)                                                              \
	linux_print(limit, LINUX_HERE, linux_current.now_ns, format,                               \
		    LINUX_WORDS(format, ##__VA_ARGS__))
#define LINUX_WARN_IF(limit, condition, format, ...)                                               \
	({                                                                                         \
		bool linux_warns = !!(condition);                                                  \
                                                                                                   \
		if (__builtin_expect(linux_warns, 0))                                              \
			linux_warn(limit, LINUX_HERE, linux_current.now_ns, __func__, format,      \
				   LINUX_WORDS(format, ##__VA_ARGS__));                            \
		__builtin_expect(linux_warns, 0);                                                  \
	})

#endif
