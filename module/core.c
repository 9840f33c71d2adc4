// SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause
/*
 * core.c - the module: its parameters, what it registers, and the device through which a program
 * registers more, reads the state of sockets and the log of calls. It must not know an algorithm:
 * package.h, which the front end writes, lists those that are in it.
 */
#include <linux/capability.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/net.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "core.h"
#include "device.h"
#include "package.h"

#define FP_LOG_BYTES (64u << 20)

#define FP_EXTERN_ALGORITHM(name) extern const struct fp_algorithm fp_algorithm_##name;
#define FP_EXTERN_SET(name) extern const struct fp_set fp_set_##name;
FP_PACKAGE_ALGORITHMS(FP_EXTERN_ALGORITHM)
FP_PACKAGE_SETS(FP_EXTERN_SET)

#define FP_ALGORITHM_ROW(name) &fp_algorithm_##name,
#define FP_SET_ROW(name) &fp_set_##name,
static const struct fp_algorithm *const fp_algorithms[] = {FP_PACKAGE_ALGORITHMS(FP_ALGORITHM_ROW)};
static const struct fp_set *const fp_sets[] = {FP_PACKAGE_SETS(FP_SET_ROW)};

static bool fp_on_request;
module_param_named(on_request, fp_on_request, bool, 0444);
MODULE_PARM_DESC(on_request, "register nothing until a program asks for it");

bool fp_uses_ring;
module_param_named(ring, fp_uses_ring, bool, 0444);
MODULE_PARM_DESC(ring, "judge losses by snapshots of bursts, as eBPF has to, not by each packet");

/* For each algorithm that asks, IPv4, IPv6 and IPv4 in IPv6. */
static struct fp_family fp_families[3 * ARRAY_SIZE(fp_algorithms)];
static DEFINE_SPINLOCK(fp_families_lock);

const struct fp_family *fp_family_of(const struct inet_connection_sock_af_ops *original,
				     fp_xmit *queue_xmit)
{
	struct fp_family *family = NULL;
	u32 i;

	spin_lock_bh(&fp_families_lock);
	for (i = 0; i < ARRAY_SIZE(fp_families); i++) {
		family = &fp_families[i];
		if (!family->original) {
			family->calls = *original;
			family->calls.queue_xmit = queue_xmit;
			family->original = original;
		}
		if (family->original == original && family->calls.queue_xmit == queue_xmit)
			break;
	}
	spin_unlock_bh(&fp_families_lock);
	return i < ARRAY_SIZE(fp_families) ? family : NULL;
}

/* All that ever were registered, and what guards the list. */
static LIST_HEAD(fp_variants);
static DEFINE_MUTEX(fp_variants_lock);

/* A decimal in the parameter's unit, rounded to what is stored. */
static int fp_param_parse(const char *text, const struct fp_param *about, s64 *stored)
{
	u64 number = 0, divisor = 1;
	bool is_fraction = false, has_digits = false, is_negative = *text == '-';

	for (text += is_negative; *text && *text != '\n'; text++) {
		if (*text == '.' && !is_fraction) {
			is_fraction = true;
			continue;
		}
		if (*text < '0' || *text > '9' || number > 1000000000000ull)
			return -EINVAL;
		has_digits = true;
		if (is_fraction && divisor >= 1000000)
			continue;
		number = 10 * number + (*text - '0');
		divisor *= is_fraction ? 10 : 1;
	}
	number = (number * about->scale + divisor / 2) / divisor;
	*stored = about->origin + (is_negative ? -(s64)number : (s64)number);
	return has_digits ? 0 : -EINVAL;
}

/* Millionths, as a decimal. */
static int fp_param_print(char *text, size_t size, u32 stored, const struct fp_param *about)
{
	bool is_negative = stored < about->origin;
	u32 distance = is_negative ? about->origin - stored : stored - about->origin;
	u64 millionths = ((u64)distance * 1000000 + about->scale / 2) / about->scale;
	int length = scnprintf(text, size, "%s%llu.%06llu", is_negative ? "-" : "",
			       millionths / 1000000, millionths % 1000000);

	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	text[length] = 0;
	return length;
}

static int fp_param_set(const char *text, const struct kernel_param *param)
{
	const struct fp_place *place = param->arg;
	const struct fp_param *about = place->about;
	char least[24], most[24];
	s64 stored;

	if (!fp_param_parse(text, about, &stored) && stored >= about->min && stored <= about->max) {
		*place->value = stored;
		return 0;
	}
	fp_param_print(least, sizeof(least), about->min, about);
	fp_param_print(most, sizeof(most), about->max, about);
	pr_err("%s: %s=%s: must be %s to %s\n", FP_DEVICE, param->name, text, least, most);
	return -ERANGE;
}

static int fp_param_get(char *text, const struct kernel_param *param)
{
	const struct fp_place *place = param->arg;
	int length = fp_param_print(text, PAGE_SIZE - 1, *place->value, place->about);

	text[length] = '\n';
	text[length + 1] = 0;
	return length + 1;
}

const struct kernel_param_ops fp_param_ops = {.set = fp_param_set, .get = fp_param_get};

static struct fp_log *fp_log_make(u32 call_bytes)
{
	struct fp_log *log = vzalloc(sizeof(*log) + FP_LOG_BYTES);

	if (!log)
		return NULL;
	spin_lock_init(&log->lock);
	log->call_bytes = call_bytes;
	log->most = rounddown_pow_of_two(FP_LOG_BYTES / call_bytes);
	return log;
}

bool fp_log_put(struct fp_log *log, const void *call)
{
	bool has_room;

	spin_lock_bh(&log->lock);
	has_room = log->next - log->first < log->most;
	if (has_room) {
		u32 place = log->next++ & (log->most - 1);

		memcpy(log->calls + (size_t)place * log->call_bytes, call, log->call_bytes);
	}
	spin_unlock_bh(&log->lock);
	return has_room;
}

static const void *fp_log_first(struct fp_log *log)
{
	const void *call = NULL;

	spin_lock_bh(&log->lock);
	if (log->first != log->next)
		call = log->calls + (size_t)(log->first & (log->most - 1)) * log->call_bytes;
	spin_unlock_bh(&log->lock);
	return call;
}

static struct fp_variant *fp_variant_find(const char *kernel_name)
{
	struct fp_variant *variant;

	list_for_each_entry(variant, &fp_variants, others)
		if (variant->is_registered && !strcmp(variant->ops.name, kernel_name))
			return variant;
	return NULL;
}

static void fp_variant_destroy(struct fp_variant *variant)
{
	vfree(variant->log);
	kfree(variant);
}

/* Whether sockets use, or may come to use, other constants of an algorithm that has one set. */
static bool fp_is_set_otherwise(const struct fp_algorithm *algorithm, const u32 *params)
{
	size_t size = algorithm->param_count * sizeof(u32);
	struct fp_variant *variant;

	list_for_each_entry(variant, &fp_variants, others) {
		if (variant->algorithm == algorithm && memcmp(variant->params, params, size) &&
		    (variant->is_registered || READ_ONCE(variant->counts.live)))
			return true;
	}
	return false;
}

static int fp_variant_add(const struct fp_algorithm *algorithm, const char *kernel_name,
			  const u32 *params, bool is_traced)
{
	struct fp_variant *variant;
	size_t size = struct_size(variant, params, algorithm->param_count);
	int error;
	u32 i;

	for (i = 0; i < algorithm->param_count; i++)
		if (params[i] < algorithm->params[i].min || params[i] > algorithm->params[i].max)
			return -ERANGE;
	if (algorithm->has_one_set && fp_is_set_otherwise(algorithm, params))
		return -EBUSY;
	/* A power of two is aligned to its size, as the operations want to be to a cache line. */
	variant = kzalloc(roundup_pow_of_two(size), GFP_KERNEL);
	if (!variant)
		return -ENOMEM;
	memcpy(&variant->ops, algorithm->ops, sizeof(variant->ops));
	if (!(algorithm->flags_of(params) & CC_WANTS_RTT))
		variant->ops.pkts_acked = NULL;
	if (!(algorithm->flags_of(params) & CC_WANTS_ACKS))
		variant->ops.in_ack_event = NULL;
	strscpy(variant->ops.name, kernel_name, sizeof(variant->ops.name));
	memcpy(variant->params, params, algorithm->param_count * sizeof(u32));
	variant->algorithm = algorithm;
	if (is_traced) {
		variant->log = fp_log_make(algorithm->call_bytes);
		if (!variant->log) {
			fp_variant_destroy(variant);
			return -ENOMEM;
		}
	}
	error = tcp_register_congestion_control(&variant->ops);
	if (error) {
		fp_variant_destroy(variant);
		return error;
	}
	variant->is_registered = true;
	list_add_tail(&variant->others, &fp_variants);
	return 0;
}

static void fp_variant_remove(struct fp_variant *variant)
{
	if (variant->is_registered)
		tcp_unregister_congestion_control(&variant->ops);
	variant->is_registered = false;
}

static int fp_register(const struct fp_described *wanted)
{
	u32 i;

	if (strnlen(wanted->kernel_name, FP_NAME_BYTES) == FP_NAME_BYTES ||
	    !wanted->kernel_name[0] || wanted->param_count > FP_PARAMS_MOST)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(fp_algorithms); i++) {
		if (strncmp(fp_algorithms[i]->name, wanted->algorithm, sizeof(wanted->algorithm)))
			continue;
		if (fp_algorithms[i]->param_count != wanted->param_count)
			return -EINVAL;
		return fp_variant_add(fp_algorithms[i], wanted->kernel_name, wanted->params,
				      wanted->is_traced);
	}
	return -ENOENT;
}

static int fp_describe(struct fp_described *described)
{
	u32 index = described->index;
	struct fp_variant *variant;

	memset(described, 0, sizeof(*described));
	described->index = index;
	list_for_each_entry(variant, &fp_variants, others) {
		if (index--)
			continue;
		strscpy(described->algorithm, variant->algorithm->name,
			sizeof(described->algorithm));
		strscpy(described->kernel_name, variant->ops.name, sizeof(described->kernel_name));
		described->is_traced = variant->log != NULL;
		described->flags = variant->algorithm->flags;
		described->state_bytes = variant->algorithm->state_bytes;
		described->param_count = variant->algorithm->param_count;
		memcpy(described->params, variant->params,
		       variant->algorithm->param_count * sizeof(u32));
		described->live = READ_ONCE(variant->counts.live);
		described->opened = READ_ONCE(variant->counts.opened);
		described->trace_lost = READ_ONCE(variant->counts.trace_lost);
		described->seed = variant->counts.seed;
		described->is_registered = variant->is_registered;
		return 0;
	}
	return -ENOENT;
}

static bool fp_is_ours(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = READ_ONCE(inet_csk(sk)->icsk_ca_ops);

	return ops && ops->owner == THIS_MODULE;
}

/* Under the socket's lock: the state is of one call. */
static long fp_read_state(const struct fp_state *asked)
{
	void __user *buffer = u64_to_user_ptr(asked->buffer);
	struct socket *socket;
	const void *state;
	int error = 0;
	long bytes = 0;
	struct sock *sk;

	socket = sockfd_lookup(asked->socket, &error);
	if (!socket)
		return error;
	sk = socket->sk;
	if (sk_is_tcp(sk)) {
		lock_sock(sk);
		state = fp_is_ours(sk) ? *fp_socket_place(sk) : NULL;
		if (state) {
			bytes = fp_variant_of(sk)->algorithm->state_bytes;
			if (bytes > asked->bytes)
				bytes = -EMSGSIZE;
			else if (copy_to_user(buffer, state, bytes))
				bytes = -EFAULT;
		}
		release_sock(sk);
	}
	sockfd_put(socket);
	return bytes;
}

static long fp_on_named(struct file *file, unsigned int command, const char *name, u32 seed)
{
	struct fp_variant *variant = fp_variant_find(name);

	if (!variant)
		return -ENOENT;
	if (command == FP_UNREGISTER)
		fp_variant_remove(variant);
	else if (command == FP_SEED)
		WRITE_ONCE(variant->counts.seed, seed);
	else if (!variant->log)
		return -EINVAL;
	else
		file->private_data = variant->log;
	return 0;
}

static long fp_device_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *user = (void __user *)argument;
	struct fp_described *described;
	struct fp_state state;
	long result;

	if (command == FP_STATE)
		return copy_from_user(&state, user, sizeof(state)) ? -EFAULT
								   : fp_read_state(&state);
	described = kzalloc(sizeof(*described), GFP_KERNEL);
	if (!described)
		return -ENOMEM;
	if (command == FP_UNREGISTER || command == FP_TRACE)
		result = copy_from_user(described->kernel_name, user, FP_NAME_BYTES) ? -EFAULT : 0;
	else
		result = copy_from_user(described, user, sizeof(*described)) ? -EFAULT : 0;
	if (result)
		goto out;
	mutex_lock(&fp_variants_lock);
	switch (command) {
	case FP_REGISTER:
		result = fp_register(described);
		break;
	case FP_DESCRIBE:
		result = fp_describe(described);
		break;
	case FP_UNREGISTER:
	case FP_SEED:
	case FP_TRACE:
		described->kernel_name[FP_NAME_BYTES - 1] = 0;
		result = fp_on_named(file, command, described->kernel_name, described->seed);
		break;
	default:
		result = -ENOTTY;
	}
	mutex_unlock(&fp_variants_lock);
	if (!result && command == FP_DESCRIBE && copy_to_user(user, described, sizeof(*described)))
		result = -EFAULT;
out:
	kfree(described);
	return result;
}

/* One reader: the agent's. */
static ssize_t fp_device_read(struct file *file, char __user *buffer, size_t size, loff_t *offset)
{
	struct fp_log *log = file->private_data;
	size_t given = 0;
	const void *call;

	if (!log)
		return -EINVAL;
	while (given + log->call_bytes <= size && (call = fp_log_first(log))) {
		if (copy_to_user(buffer + given, call, log->call_bytes))
			return -EFAULT;
		spin_lock_bh(&log->lock);
		log->first++;
		spin_unlock_bh(&log->lock);
		given += log->call_bytes;
	}
	return given;
}

static int fp_device_open(struct inode *inode, struct file *file)
{
	/* The miscellaneous devices' own open() leaves itself here. */
	file->private_data = NULL;
	return capable(CAP_NET_ADMIN) ? 0 : -EPERM;
}

static const struct file_operations fp_device_calls = {
    .owner = THIS_MODULE,
    .open = fp_device_open,
    .read = fp_device_read,
    .unlocked_ioctl = fp_device_ioctl,
};

static struct miscdevice fp_device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = FP_DEVICE,
    .fops = &fp_device_calls,
    .mode = 0600,
};

static void fp_variants_remove(void)
{
	struct fp_variant *variant, *next;

	list_for_each_entry_safe(variant, next, &fp_variants, others)
		fp_variant_remove(variant);
	/* What kfree_rcu() frees needs no code of ours, but what reads it (get_info) does. */
	synchronize_rcu();
	list_for_each_entry_safe(variant, next, &fp_variants, others)
		fp_variant_destroy(variant);
	INIT_LIST_HEAD(&fp_variants);
}

static int __init fp_module_init(void)
{
	int error = 0;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fp_sets) && !fp_on_request && !error; i++) {
		error = fp_variant_add(fp_sets[i]->algorithm, fp_sets[i]->kernel_name,
				       fp_sets[i]->params, false);
		if (error)
			pr_err("%s: %s cannot be registered: %d\n", FP_DEVICE,
			       fp_sets[i]->kernel_name, error);
	}
	if (!error)
		error = misc_register(&fp_device);
	if (error)
		fp_variants_remove();
	return error;
}

static void __exit fp_module_exit(void)
{
	misc_deregister(&fp_device);
	fp_variants_remove();
}

module_init(fp_module_init);
module_exit(fp_module_exit);
MODULE_AUTHOR("fullpipe");
MODULE_DESCRIPTION("Congestion controls of fullpipe: " FP_PACKAGE_TITLE);
MODULE_VERSION(FP_PACKAGE_VERSION);
MODULE_LICENSE("Dual BSD/GPL");
