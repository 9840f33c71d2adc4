/* A path for tests where the kernel has no netem: of the packets that arrive, one in 2000 is
 * dropped and one in 1000 that can be is marked CE, at random. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

SEC("tc")
int path(struct __sk_buff *skb)
{
	__u32 dice = bpf_get_prandom_u32() % 2000;

	if (dice == 0)
		return TC_ACT_SHOT;
	if (dice <= 2)
		bpf_skb_ecn_set_ce(skb);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
