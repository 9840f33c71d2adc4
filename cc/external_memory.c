/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* external_memory.c - what compilers call for copies of structures, where there is no libc. Through
 * volatile pointers, because compilers would make a call of the function itself from a plain loop.
 */
typedef __SIZE_TYPE__ size;

void *memcpy(void *to, const void *from, size count);
void *memmove(void *to, const void *from, size count);
void *memset(void *to, int value, size count);
int memcmp(const void *one, const void *other, size count);

void *memcpy(void *to, const void *from, size count) { return memmove(to, from, count); }

void *memmove(void *to, const void *from, size count)
{
	volatile char *target = to;
	const char *source = from;
	size i;

	for (i = 0; i < count; i++) {
		size place = target < source ? i : count - 1 - i;

		target[place] = source[place];
	}
	return to;
}

void *memset(void *to, int value, size count)
{
	volatile char *target = to;
	size i;

	for (i = 0; i < count; i++)
		target[i] = (char)value;
	return to;
}

int memcmp(const void *one, const void *other, size count)
{
	const volatile unsigned char *a = one, *b = other;
	size i;

	for (i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}
