/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/* set.h - one set of constants of the algorithm: FP_SET, its name as a C word, FP_KERNEL_NAME, what
 * sockets write, and FP_VALUES. Every constant is a parameter of the module, SET_CONSTANT, in its
 * unit. Included once for each set. */

static struct FP_CC(_params) FP_PASTE(fp_values_, FP_SET) = {FP_VALUES};

#define FP_SET_NAME(name) FP_PASTE(FP_PASTE(FP_SET, _), name)
#define FP_SET_PARAM(name, dflt, min, max, scale, unit, zero, source, meaning, ...)                \
	static const struct fp_place FP_PASTE(fp_place_, FP_SET_NAME(name)) = {                    \
	    &fp_params[FP_PASTE(fp_param_, name)], &FP_PASTE(fp_values_, FP_SET).name};            \
	FP_MODULE_PARAM(FP_SET_NAME(name), FP_PASTE(fp_place_, FP_SET_NAME(name)),                 \
			unit ": " meaning);

FP_CC(_PARAMS)
(FP_SET_PARAM)

    extern const struct fp_set FP_PASTE(fp_set_, FP_SET);
const struct fp_set FP_PASTE(fp_set_, FP_SET) = {
    .kernel_name = FP_KERNEL_NAME,
    .algorithm = &FP_PASTE(fp_algorithm_, FP_ALGORITHM),
    .params = (const u32 *)&FP_PASTE(fp_values_, FP_SET),
};

/* So that the kernel finds it by the name (tcp_ca_find_autoload()). */
MODULE_ALIAS("tcp_" FP_KERNEL_NAME);

#undef FP_SET_PARAM
#undef FP_SET_NAME
#undef FP_SET
#undef FP_KERNEL_NAME
#undef FP_VALUES
