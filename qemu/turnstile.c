/* Between QEMU's processor and its main loop: preloaded into QEMU, it lets the main loop go on only
 * while the processor waits.
 *
 * With -icount and sleep=off the main loop moves the virtual clock on to the next timer when it
 * finds the processor halted. QEMU 7.2 marks the processor halted a moment before it adds what that
 * has executed to the clock (rr_cpu_thread_fn() calls icount_process_data() behind
 * tcg_cpus_exec()). A main loop that wakes between the two, for an event that is left over from its
 * last turn, counts from a clock that is behind: the next timer comes some nanoseconds late, and
 * two runs of one plan differ. Whether it wakes there is the host scheduler's choice; with this
 * library it cannot.
 *
 * It knows the processor by its thread's name ("ALL CPUs/TCG", with -name debug-threads=on), and
 * that it waits in pthread_cond_wait() and the main loop in ppoll(). It must never know what the
 * guest does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A guest that has not halted for so long is busy: there is no clock to move, and the main loop,
 * which hears SIGTERM, may go on. */
#define PATIENCE_S 2

enum { RUNS, WAITS };

static _Thread_local int is_processor;
/* WAITS also before there is a processor. */
static _Atomic(int) processor = WAITS;
static _Atomic(pthread_cond_t *) waits_for;
static _Atomic(int) main_waits;

/* The C library's own function; where its first version had other types, the version with these. */
static void *next(const char *name, const char *version)
{
	void *versioned = dlvsym(RTLD_NEXT, name, version);

	return versioned ? versioned : dlsym(RTLD_NEXT, name);
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	int (*set)(pthread_t, const char *) = next("pthread_setname_np", "GLIBC_2.34");

	if (pthread_equal(thread, pthread_self()) && !strcmp(name, "ALL CPUs/TCG")) {
		is_processor = 1;
		atomic_store(&processor, RUNS);
	}
	return set(thread, name);
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	int error;

	if (!wait)
		wait = next("pthread_cond_wait", "GLIBC_2.3.2");
	if (!is_processor)
		return wait(condition, mutex);
	atomic_store(&waits_for, condition);
	atomic_store(&processor, WAITS);
	if (atomic_load(&main_waits))
		syscall(SYS_futex, &processor, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	error = wait(condition, mutex);
	atomic_store(&processor, RUNS);
	return error;
}

/* Who wakes the processor has ended its wait, whenever the host lets it run. */
int pthread_cond_broadcast(pthread_cond_t *condition)
{
	static int (*broadcast)(pthread_cond_t *);

	if (!broadcast)
		broadcast = next("pthread_cond_broadcast", "GLIBC_2.3.2");
	if (condition == atomic_load(&waits_for))
		atomic_store(&processor, RUNS);
	return broadcast(condition);
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static int (*poll_them)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	const struct timespec patience = {.tv_sec = PATIENCE_S};
	int ready, error = 0;

	if (!poll_them)
		poll_them = next("ppoll", "GLIBC_2.4");
	ready = poll_them(files, count, timeout, mask);
	if (ready <= 0 || atomic_load(&processor) == WAITS)
		return ready;
	if (getpid() != gettid())
		return ready;
	atomic_store(&main_waits, 1);
	while (atomic_load(&processor) == RUNS && error != ETIMEDOUT)
		if (syscall(SYS_futex, &processor, FUTEX_WAIT_PRIVATE, RUNS, &patience, NULL, 0))
			error = errno;
	atomic_store(&main_waits, 0);
	return ready;
}
