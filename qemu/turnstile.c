/* Between QEMU's processor and its main loop: preloaded into QEMU, it moves the virtual clock on
 * the processor's own thread, and lets the main loop go on only while the processor waits.
 *
 * With -icount and sleep=off the main loop moves the clock on to the next timer when it finds the
 * processor halted. That has two faults:
 *
 * - A simulated second at 100 Mbit/s halts 10,000 times, and each time two threads wake one
 *   another: up to a tenth of the whole CPU time, half of it on a busy host. The processor's thread
 *   holds QEMU's lock when it is about to wait, and QEMU exports what the main loop calls; so it
 *   calls that itself and goes on.
 * - QEMU 7.2 marks the processor halted a moment before it adds what that has executed to the
 *   clock (rr_cpu_thread_fn() calls icount_process_data() behind tcg_cpus_exec()). A main loop
 *   that wakes between the two counts from a clock that is behind: the next timer comes some
 *   nanoseconds late, and two runs of one plan differ. Whether it wakes there is the host
 *   scheduler's choice; with this library it cannot.
 *
 * It knows the processor by its thread's name ("ALL CPUs/TCG", with -name debug-threads=on), and
 * that it waits in pthread_cond_wait() and the main loop in ppoll(). A QEMU that does not export
 * these functions moves the clock in its main loop, as ever.
 *
 * It tells the guest for how long the processor has idled, in the memory that both share
 * (FULLPIPE_SHARED names it): what the clock has moved on beyond the instructions that were
 * executed. No kernel knows it so well, and some do not know it at all.
 *
 * It also stops a machine that is to be kept as it is (FULLPIPE_HOLD): the guest says in that
 * memory that it is ready and sleeps, and the next time that the processor waits the clock stands
 * still and QEMU is asked to pause. Whether the main loop moves the clock once more before it does
 * makes no difference: that is what comes next anyway, and the guest sleeps for many such steps.
 *
 * It must never know what else the guest does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How many times the processor may go on by itself while the main loop wants to: often enough for
 * signals, seldom enough to cost nothing. */
#define TURNS 256
/* A main loop that waits looks so often whether the machine is to end: a guest that has asked to be
 * turned off does not halt, but spins until it is. */
#define GLANCE_NS 20000000
/* After so many looks it asks for the very next turn, and after as many again goes on: a guest that
 * has not halted since is busy, and there is no clock to move. */
#define PATIENCE 100

enum { RUNS, WAITS };
enum { CONTENT, ASKS, INSISTS };

static _Thread_local int is_processor;
/* WAITS also before there is a processor. */
static _Atomic(int) processor = WAITS;
static _Atomic(pthread_cond_t *) waits_for;
static _Atomic(int) main_loop = CONTENT;

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

/* QEMU's own, of include/qemu/timer.h, sysemu/cpus.h, sysemu/cpu-timers.h and sysemu/runstate.h
 * (7.2). */
#define QEMU_CLOCK_VIRTUAL 1
#define QEMU_TIMER_ATTR_EXTERNAL 1

static struct {
	bool (*runstate_is_running)(void);
	bool (*all_cpu_threads_idle)(void);
	int64_t (*qemu_clock_deadline_ns_all)(int clock, int attributes);
	void (*icount_start_warp_timer)(void);
	bool (*qemu_clock_run_timers)(int clock);
	int (*qemu_shutdown_requested_get)(void);
	int (*qemu_reset_requested_get)(void);
	void (*qemu_system_vmstop_request_prepare)(void);
	void (*qemu_system_vmstop_request)(int state);
	int64_t (*icount_get)(void);
	int64_t (*icount_get_raw)(void);
	/* This QEMU exports all of them. */
	bool found;
} qemu;

/* RunState of qapi/run-state.json. */
#define RUN_STATE_PAUSED 4

/* The first bytes of the shared memory (struct Header of crates/fullpipe-agent/src/shared.rs). */
struct header {
	/* The host's, about the job. */
	uint64_t job[3];
	/* Sizes and offsets of this struct. The guest refuses others than its own. */
	uint8_t layout[8];
	/* Not zero: the guest is ready. */
	_Atomic(uint32_t) ready;
	/* For how long the processor has idled. */
	_Atomic(int64_t) idle_ns;
};

/* Where both sides look for it, whatever else changes. */
_Static_assert(offsetof(struct header, layout) == 24, "the guest reads the layout at 24");

#define OFFSET_AND_SIZE(member)                                                                    \
	offsetof(struct header, member), sizeof(((struct header *)NULL)->member)

static const uint8_t layout[8] = {sizeof(struct header), offsetof(struct header, job),
				  OFFSET_AND_SIZE(layout), OFFSET_AND_SIZE(ready),
				  OFFSET_AND_SIZE(idle_ns)};

/* NULL: nobody wants to know. */
static _Atomic(uint32_t) *is_ready;
/* NULL: there is no such memory. */
static _Atomic(int64_t) *idle_ns;

__attribute__((constructor)) static void find_qemu(void)
{
#define FIND(name) (*(void **)&qemu.name = dlsym(RTLD_DEFAULT, #name))
	qemu.found = FIND(runstate_is_running) && FIND(all_cpu_threads_idle) &&
		     FIND(qemu_clock_deadline_ns_all) && FIND(icount_start_warp_timer) &&
		     FIND(qemu_clock_run_timers) && FIND(qemu_shutdown_requested_get) &&
		     FIND(qemu_reset_requested_get) && FIND(qemu_system_vmstop_request_prepare) &&
		     FIND(qemu_system_vmstop_request) && FIND(icount_get) && FIND(icount_get_raw);
#undef FIND
}

__attribute__((constructor)) static void find_guest(void)
{
	const char *path = getenv("FULLPIPE_SHARED");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	struct header *header;

	if (file < 0)
		return;
	header = mmap(NULL, sizeof(*header), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	if (header == MAP_FAILED)
		return;
	memcpy(header->layout, layout, sizeof(layout));
	idle_ns = &header->idle_ns;
	if (getenv("FULLPIPE_HOLD"))
		is_ready = &header->ready;
}

/* The processor has nothing to do. It holds QEMU's lock here. */
static bool idles(void)
{
	return qemu.found && qemu.runstate_is_running() && qemu.all_cpu_threads_idle();
}

/* The processor, which had nothing to do, is about to go on. With shift=0 an instruction is a
 * nanosecond. */
static void tell_idle_time(void)
{
	if (idle_ns)
		atomic_store(idle_ns, qemu.icount_get() - qemu.icount_get_raw());
}

/* The guest is to stay as it is. The processor holds QEMU's lock here. */
static bool holds(void)
{
	static bool has_asked;

	if (!is_ready || !qemu.found || !atomic_load(is_ready))
		return false;
	if (!has_asked) {
		qemu.qemu_system_vmstop_request_prepare();
		qemu.qemu_system_vmstop_request(RUN_STATE_PAUSED);
	}
	has_asked = true;
	return true;
}

/* Moves the clock on to the next timer and runs what is due, as main_loop_wait() would, unless it
 * is the main loop's turn or there is nothing that time alone could end. The processor holds QEMU's
 * lock here, and looks again at what it waits for. */
static bool moved_the_clock(void)
{
	static int turns;
	int wish = atomic_load(&main_loop);

	if (!qemu.found || wish == INSISTS || (wish == ASKS && ++turns >= TURNS)) {
		turns = 0;
		return false;
	}
	if (!idles() ||
	    qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, ~QEMU_TIMER_ATTR_EXTERNAL) < 0)
		return false;
	qemu.icount_start_warp_timer();
	qemu.qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
	return true;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
	static int (*wait)(pthread_cond_t *, pthread_mutex_t *);
	bool has_idled;
	int error;

	if (!wait)
		wait = next("pthread_cond_wait", "GLIBC_2.3.2");
	if (!is_processor)
		return wait(condition, mutex);
	if (!holds() && moved_the_clock()) {
		tell_idle_time();
		return 0;
	}
	atomic_store(&waits_for, condition);
	atomic_store(&processor, WAITS);
	if (atomic_load(&main_loop) != CONTENT)
		syscall(SYS_futex, &processor, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	has_idled = idles();
	error = wait(condition, mutex);
	atomic_store(&processor, RUNS);
	if (has_idled)
		tell_idle_time();
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

static bool is_to_end(void)
{
	return qemu.found &&
	       (qemu.qemu_shutdown_requested_get() || qemu.qemu_reset_requested_get());
}

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
	static int (*poll_them)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
	const struct timespec glance = {.tv_nsec = GLANCE_NS};
	int ready;

	if (!poll_them)
		poll_them = next("ppoll", "GLIBC_2.4");
	ready = poll_them(files, count, timeout, mask);
	if (ready <= 0 || atomic_load(&processor) == WAITS)
		return ready;
	if (getpid() != gettid())
		return ready;
	for (int glances = 0; glances < 2 * PATIENCE;) {
		if (atomic_load(&processor) != RUNS || is_to_end())
			break;
		atomic_store(&main_loop, glances < PATIENCE ? ASKS : INSISTS);
		if (syscall(SYS_futex, &processor, FUTEX_WAIT_PRIVATE, RUNS, &glance, NULL, 0) &&
		    errno == ETIMEDOUT)
			glances++;
	}
	atomic_store(&main_loop, CONTENT);
	return ready;
}
