"""Algorithms that attack the program that runs them: C and Python, each a snippet in a file
that otherwise works. `@OUT@` is a file that must not appear, `@VICTIM@` one that must stay.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from external_files import GROW, works

#: What becomes of a file: a text is what refuses it before anything runs, and what it says.
FAILS = None  # its runs fail, contained
HARMLESS = ""  # it may also work

#: Where a snippet stands in the file of `cc new`: before its functions, or in one of them.
_PLACES = {
    "top": ("CC_INLINE void mine_init", "@\nCC_INLINE void mine_init"),
    "on_ack": (GROW, f"@\n\t{GROW}"),
    "init": ("struct cc_ctl *ctl)\n{\n}", "struct cc_ctl *ctl)\n{\n@\n}"),
    "on_event": ("\tif (event->kind == CC_EVENT_SSTHRESH)",
                 "@\n\tif (event->kind == CC_EVENT_SSTHRESH)"),
    "info": ("1, s->prior_cwnd,", "1, ({ @ s->prior_cwnd; }),"),
    "first": ("#include \"cc.h\"", "@\n#include \"cc.h\""),
    "ack_first": ("\tu32 left = ack->acked_sacked;", "@\n\tu32 left = ack->acked_sacked;"),
}  # fmt: skip


@dataclass(frozen=True)
class Snippet:
    """Code, where it stands, and what becomes of it."""

    place: str
    code: str
    ends: str | None


def _calls(function: str, arguments: str, kind: str = "int") -> Snippet:
    """A function of libc that the file declares itself."""
    code = f"extern {kind} {function}(); (void){function}({arguments});"
    return Snippet("on_ack", code, f"{function}() is not there")


def _attribute(name: str) -> Snippet:
    code = f"__attribute__(({name})) static void attacks(void) {{ }}"
    return Snippet("top", code, f"attribute {name.split('(')[0].strip('_')}")


_ASM, _PRAGMA = "inline assembly", "has no such line"
_LOOP = "for (volatile u32 i = 0;; i++) ;"

C: dict[str, Snippet] = {
    # Assembly.
    "system call": Snippet(
        "on_ack", 'long r; __asm__ volatile("syscall" : "=a"(r) : "a"(57L) : "rcx", "r11");', _ASM
    ),
    "32-bit system call": Snippet("on_ack", '__asm("int $0x80" :: "a"(2));', _ASM),
    "assembly behind a macro": Snippet(
        "top", '#define PASTE(a, b) a##b\nPASTE(__as, m__)("syscall");', _ASM
    ),
    "assembly between functions": Snippet("top", '__asm__(".globl malloc\\nmalloc: ret");', _ASM),
    "incbin": Snippet("top", '__asm__(".incbin \\"/etc/shadow\\"");', _ASM),
    "assembly that pushes a section": Snippet(
        "top", '__asm__(".section .init_array\\n.quad mine_init\\n.previous");', _ASM
    ),
    "assembly like CC_STEP": Snippet("on_ack", '__asm__ volatile("hlt" ::: "memory");', _ASM),
    "assembly with goto": Snippet("on_ack", '__asm__ goto("jmp %l0" :::: out); out: ;', _ASM),
    "a register": Snippet("top", 'register u64 stack __asm__("rsp");', _ASM),
    "another linker name": Snippet("top", 'int run(const char *) __asm__("system");', _ASM),
    # Files.
    "include of a file": Snippet("top", '#include "/etc/passwd"', "/etc/passwd"),
    "include in angles": Snippet("top", "#include </etc/passwd>", "no libc"),
    "include of a device": Snippet("top", '#include "/dev/zero"', "outside the algorithm's folder"),
    "include of the environment": Snippet("top", '#include "/proc/self/environ"', "outside the"),
    "include of the folder above": Snippet("top", '#include "../victim"', "outside the algorithm"),
    "include by a link": Snippet("top", '#include "link.h"', "outside the algorithm's folder"),
    "include of a pipe": Snippet("top", '#include "pipe.h"', "not a file"),
    "include_next": Snippet("top", "#include_next <stdio.h>", "#include_next"),
    "import": Snippet("top", "#import <stdio.h>", "#import"),
    "embed": Snippet("top", 'static const u8 a[] = {\n#embed "/etc/passwd"\n};', "#embed"),
    "has_include": Snippet("top", '#if __has_include("/etc/shadow")\n#endif', "__has_include"),
    "pasted has_include": Snippet(
        "top", '#define A(a,b) a##b\n#define B A(__has_,include)\n#if B("/etc/shadow")\n#endif',
        "puts names together",
    ),
    "computed include": Snippet("top", '#define F "/etc/passwd"\n#include F', "in quotes"),
    "include over two lines": Snippet("top", '#inc\\\nlude "/etc/passwd"', "outside the"),
    "include with a comment": Snippet("top", '#/*\n*/include /**/ "/etc/passwd"', "outside the"),
    "include in digraphs": Snippet("top", '%:include "/etc/passwd"', "outside the"),
    "include in trigraphs": Snippet("top", '??=include "/etc/passwd"', "a trigraph"),
    "include behind a quote": Snippet(
        "top", "#if 0\n' /*\n#endif\n#include \"/etc/passwd\"\n/**/", "outside the"
    ),
    "include behind a character": Snippet(
        "top", "#define Q '\"'\n#define T \"/*\"\n#include \"/etc/passwd\"\n/**/", "outside the"
    ),
    "line": Snippet("top", '#line 1 "/usr/include/bpf/bpf_helpers.h"', "#line"),
    "line marker": Snippet("top", '# 1 "/usr/include/stdio.h" 3', "has no such line"),
    # Pragmas.
    "pragma optimize": Snippet("top", '#pragma GCC optimize("O0")', _PRAGMA),
    "pragma push_options": Snippet("top", "#pragma GCC push_options", _PRAGMA),
    "pragma dependency": Snippet("top", '#pragma GCC dependency "/etc/shadow"', _PRAGMA),
    "pragma weak": Snippet("top", "#pragma weak malloc", _PRAGMA),
    "pragma redefine_extname": Snippet("top", "#pragma redefine_extname mine_run system", _PRAGMA),
    "_Pragma": Snippet("top", '_Pragma("GCC visibility push(default)")', _PRAGMA),
    "_Pragma behind a macro": Snippet(
        "top", '#define DO(x) _Pragma(#x)\nDO(GCC target("avx512f"))', _PRAGMA
    ),
    # Attributes.
    "constructor": _attribute("constructor"),
    "destructor": _attribute("__destructor__"),
    "constructor in brackets": Snippet(
        "top", "[[gnu::constructor]] static void attacks(void) { }", "attribute constructor"
    ),
    "no_sanitize_coverage": _attribute("no_sanitize_coverage"),
    "no_sanitize": _attribute('no_sanitize("bounds")'),
    "init_array": _attribute('section(".init_array")'),
    "preinit_array": Snippet(
        "top", "static void attacks(void) { }\n__attribute__((section(\".preinit_array\"), used)) "
        "static void (*const run)(void) = attacks;", "attribute section",
    ),
    "naked": _attribute("naked"),
    "target": _attribute('target("avx512f")'),
    "optimize": _attribute('optimize("no-stack-protector")'),
    "ifunc": Snippet(
        "top", "static void *choose(void) { for (;;) ; }\n"
        'void attacks(void) __attribute__((ifunc("choose")));', "attribute ifunc",
    ),
    "alias": Snippet("top", 'void malloc(void) __attribute__((alias("own")));', "attribute alias"),
    "weak": Snippet("top", "__attribute__((weak)) int open(void) { return 1; }", "attribute weak"),
    "visibility": Snippet(
        "top", '__attribute__((visibility("default"))) void *malloc(u64 n) { return (void *)n; }',
        "attribute visibility",
    ),
    "cleanup": Snippet("on_ack", "__attribute__((cleanup(mine_run))) u32 x = 1;", "cleanup"),
    # Functions outside.
    "system": _calls("system", '"touch @OUT@"'),
    "fork": _calls("fork", ""),
    "open": _calls("open", '"@OUT@", 65, 438'),
    "execve": _calls("execve", '"/bin/sh", 0, 0'),
    "dlopen": _calls("dlopen", '"libc.so.6", 2', "void *"),
    "mmap": _calls("mmap", "0, 4096, 7, 34, -1, 0", "void *"),
    "syscall": _calls("syscall", "57"),
    "signal": _calls("signal", "15, 1", "void *"),
    "longjmp": _calls("longjmp", "ctl, 1", "void"),
    "pthread_create": _calls("pthread_create", "0, 0, 0, 0"),
    "free": _calls("free", "ctl", "void"),
    "the loader": _calls("__libc_start_main", "0"),
    "a function of the host": _calls("PyErr_SetString", "0"),
    "builtin_trap": Snippet("on_ack", "__builtin_trap();", "__builtin_trap"),
    "builtin_longjmp": Snippet("on_ack", "__builtin_longjmp((void **)ctl, 1);", "__builtin_long"),
    "builtin_return_address": Snippet(
        "on_ack", "*(u64 *)__builtin_frame_address(0) = 0;", "__builtin_frame_address"
    ),
    "builtin_clear_cache": Snippet(
        "on_ack", "__builtin___clear_cache((char *)ctl, (char *)ctl + 8);", "__builtin___clear"
    ),
    # Loops.
    "loop in on_ack": Snippet("on_ack", _LOOP, FAILS),
    "empty loop first": Snippet("ack_first", "\twhile (1)\n\t\t;", FAILS),
    "loop in init": Snippet("init", _LOOP, FAILS),
    "loop in on_event": Snippet("on_event", _LOOP, FAILS),
    "loop in info": Snippet("info", _LOOP, FAILS),
    "loop of 2^63": Snippet("on_ack", "for (volatile u64 i = 0; i < 1ull << 63; i++) ;", FAILS),
    # Recursion.
    "recursion": Snippet("on_ack", "mine_on_ack(s, p, conn, ack, ctl);", "recursion"),
    "recursion of two": Snippet(
        "top", "static u32 b(u32 n);\n__attribute__((noinline)) static u32 a(u32 n) "
        "{ return b(n) + 1; }\n__attribute__((noinline)) static u32 b(u32 n) { return a(n) + 1; }",
        "a() calls b() calls a()",
    ),
    "recursion by a pointer": Snippet(
        "on_ack", "u32 (*volatile deep)(const struct mine *, const struct mine_params *, "
        "const struct cc_conn *, const struct cc_ack *, struct cc_ctl *) = (void *)0; "
        "ctl->cwnd += deep(s, p, conn, ack, ctl);", FAILS,
    ),
    # Memory.
    "null": Snippet("on_ack", "*(volatile u32 *)0 = 1;", FAILS),
    "wild write": Snippet("on_ack", "*(volatile u32 *)0x7f1234567890ull = 1;", FAILS),
    "wild read": Snippet("on_ack", "ctl->cwnd += *(volatile u32 *)(8ull * left + 8);", FAILS),
    "write through all memory": Snippet(
        "on_ack", "for (volatile u8 *at = (u8 *)s;; at++) *at = 0x41;", FAILS
    ),
    "write below the state": Snippet(
        "on_ack", "for (u32 i = 0; i < 4096; i++) ((volatile u8 *)s)[-(s32)i] = 0x41;", HARMLESS
    ),
    "stack smashed": Snippet(
        "on_ack", "volatile u64 a[2]; volatile u64 *at = a; "
        "for (u32 i = 0; i < 4096; i++) at[i] = 0x4141414141414141ull; left += (u32)at[0];", FAILS,
    ),
    "write to constants": Snippet("on_ack", '*(volatile char *)"constant" = 1;', FAILS),
    "write to code": Snippet("on_ack", "*(volatile u8 *)(void *)&cc_min_u32 = 0xc3;", FAILS),
    "jump into data": Snippet("on_ack", "((void (*volatile)(void))(void *)s)();", FAILS),
    "jump to null": Snippet("on_ack", "((void (*volatile)(void))0)();", FAILS),
    "index outside": Snippet("on_ack", "u32 a[4] = {0}; ctl->cwnd += a[left + 9];", FAILS),
    "division by zero": Snippet("on_ack", "ctl->cwnd += left / (conn->ecn_low * 0u);", FAILS),
    "minimum by minus one": Snippet(
        "on_ack", "volatile s32 low = (s32)0x80000000, one = -1; ctl->cwnd += (u32)(low / one);",
        FAILS,
    ),
    "function inside a function": Snippet(
        "on_ack", "u32 inner(u32 n) { return n + left; } u32 (*volatile f)(u32) = inner; "
        "ctl->cwnd += f(1);", "mine.h",
    ),
    # Size.
    "stack of 1 GB": Snippet("on_ack", "volatile u8 a[1u << 30]; a[left] = 1;", "stack"),
    "array of unknown size": Snippet("on_ack", "volatile u8 a[left]; a[0] = 1;", "mine.h:43"),
    "static array": Snippet(
        "on_ack", "static u8 mass[1ull << 40]; mass[left] = 1; ctl->cwnd += mass[7];", "mine.h"
    ),
    "constants of 4 GB": Snippet(
        "on_ack", "static const u8 mass[1ull << 32] = {1}; ctl->cwnd += mass[left];", "mine.h"
    ),
    "state of 1 GB": Snippet("top", "struct mass { u8 a[1u << 30]; };", HARMLESS),
    "thread-local": Snippet("on_ack", "static _Thread_local u32 n; ctl->cwnd += n++;", "variable"),
    "variable": Snippet("on_ack", "static u32 n; ctl->cwnd += n++;", "is a variable"),
    "billion laughs": Snippet(
        "top", "\n".join(["#define A0 1,1,1,1,1,1,1,1,1,1",
                          *(f"#define A{n} {','.join([f'A{n - 1}'] * 10)}" for n in range(1, 10)),
                          "static const u8 mass[] = {A9};"]), "the compiler writes more than",
    ),
    "deep parentheses": Snippet("on_ack", f"left += {'(' * 60000}1{')' * 60000};", "mine"),
    "itself": Snippet("first", '#include "mine.h"', "mine.h"),
    "macros that cheat the table": Snippet(
        "top", "#define sizeof(x) 1u\n#define cc_open_ctl(a, b, c)\n#define cc_close_ctl(...)",
        HARMLESS,
    ),
    "own memcpy": Snippet("top", "void *memcpy(void *a, const void *b, u64 n) { for (;;) ; }",
                          "memcpy would replace"),
    "own main": Snippet("top", "int main(void) { for (;;) ; }", HARMLESS),
}  # fmt: skip


def _loops(depth: int) -> str:
    """A chain of functions, each inlined ten times into the next."""
    links = [f"CC_INLINE u32 f{n}(u32 x) {{ return {' + '.join([f'f{n - 1}(x)'] * 10)}; }}"
             for n in range(1, depth)]  # fmt: skip
    return "\n".join(["CC_INLINE u32 f0(u32 x) { return x * x / 3; }", *links])


def _bytes(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(2**30)


#: Whole files, made at a path; and what refuses them.
C_FILES: dict[str, tuple[Callable[[Path], None], str]] = {
    "not UTF-8": (_bytes(b"\xff\xfe\x00"), "not a text file"),
    "NUL bytes": (_bytes(b"#define mine_FLAGS 0\0\n"), "not a text file"),
    "a line of 1 GB": (_huge, "1 MiB"),
    "empty": (_bytes(b""), "defines no congestion control"),
    "a folder": (lambda path: path.mkdir(), "mine.h"),
    "a pipe": (lambda path: os.mkfifo(path), "not a file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "not a file"),
    "a keyword": (_bytes(b"#define int_FLAGS 0\nstruct int {int a;};\n#define int_PARAMS(P)\n"
                         b"int_init() int_on_ack() int_on_event() int_info()"), "mine.h"),
}  # fmt: skip


def write_c(name: str, folder: Path, out: Path, victim: Path) -> Path:
    """The file of an attack, called mine.h."""
    path = folder / "mine.h"
    if name in C_FILES:
        C_FILES[name][0](path)
        return path
    snippet = Snippet("top", _loops(9), "") if name == "compile time" else C[name]
    text = works(folder).read_text()
    old, new = _PLACES[snippet.place]
    assert old in text
    code = snippet.code.replace("@OUT@", str(out)).replace("@VICTIM@", str(victim))
    text = text.replace(old, new.replace("@", code, 1), 1)
    if name == "compile time":
        text = text.replace(GROW, "ctl->cwnd += f8(left);")
    path.write_text(text)
    (folder / "link.h").symlink_to("/etc/passwd")
    os.mkfifo(folder / "pipe.h")
    return path


_CLASS = """
import fullpipe
{top}
class Mine(fullpipe.Controller):
{body}
    def on_ack(self, ack):
        {on_ack}
        self.ctl.cwnd += 1
    def on_event(self, event):
        {on_event}
        pass
    def init(self):
        {init}
        pass
    def info(self, info):
        {info}
        pass
"""


def _class(on_ack: str = "", **parts: str) -> str:
    known = {"top": "", "body": "", "on_event": "", "init": "", "info": "", "on_ack": on_ack}
    return _CLASS.format(**(known | parts))


#: What a class knows of its worker, and how it sends what it forged.
_SETUP = """import json, os, struct, sys
SETUP = json.loads(sys.argv[1]) if sys.argv[1:] and sys.argv[1].startswith("{") else {}
def send(content, blobs=0):
    text = content[:-1] + b', "blobs": [%d]}' % blobs if blobs else content[:-1] + b', "blobs": []}'
    data = memoryview(struct.pack("<IQ", len(text), blobs) + text)
    while data:
        data = data[os.write(SETUP["answers"], data):]
"""

#: Python: name -> file, and what its run's message says; None: any; HARMLESS: it may work.
CLASSES: dict[str, tuple[str, str | None]] = {
    "loop at import": (_class(top="while True: pass"), FAILS),
    "loop in the class": (_class(body="    while True: pass"), FAILS),
    "loop in on_ack": (_class("while True: pass"), FAILS),
    "loop in on_event": (_class(on_event="while True: pass"), FAILS),
    "loop in init": (_class(init="while True: pass"), FAILS),
    "loop in info": (_class(info="while True: pass"), FAILS),
    "loop that catches all": (
        _class("while True:\n            try:\n                raise KeyboardInterrupt\n"
               "            except BaseException: pass"), FAILS),
    "sleeps": (_class("import time; time.sleep(10**6)"), FAILS),
    "closes its answers": (
        _class("import os, time; os.close(SETUP['answers']); time.sleep(10**6)", top=_SETUP),
        FAILS),
    "floods its reports": (
        _class("import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
               "        while True:\n"
               "            try: os.write(SETUP['reports'], bytes(65536))\n"
               "            except BlockingIOError: pass", top=_SETUP), FAILS),
    "forges an infinite time": (_class("send(b'{\"progress\": Infinity}')", top=_SETUP), FAILS),
    "forges small steps": (
        _class("import time\n        for now in range(10**9):\n"
               "            send(b'{\"progress\": %d}' % now); time.sleep(0.01)", top=_SETUP),
        FAILS),
    "forges rows": (
        _class("send(b'{\"rows\": {\"flow_samples\": {\"t_us\": \"u64\"}}}')", top=_SETUP), FAILS),
    "forges a long message": (
        _class("send(b'{\"rows\": {}}', 2500 << 20)", top=_SETUP), FAILS),
    "forges long words": (
        _class("send(b'{\"error\": \"%s\"}' % (b'x' * 60_000_000))", top=_SETUP), FAILS),
    "starts threads": (
        _class("import threading, time; threading.stack_size(32768)\n"
               "        while True: threading.Thread(target=time.sleep, args=(10**6,)).start()"),
        FAILS),
    "sys.exit": (_class("import sys; sys.exit(0)"), FAILS),
    "sys.exit at import": (_class(top="import sys; sys.exit(0)"), FAILS),
    "os._exit": (_class("import os; os._exit(0)"), FAILS),
    "os._exit at import": (_class(top="import os; os._exit(0)"), FAILS),
    "kills its parent": (_class("import os; os.kill(os.getppid(), 9)"), FAILS),
    "kills its group": (_class("import os; os.killpg(0, 9)"), FAILS),
    "kills itself": (_class("import os, signal; os.kill(os.getpid(), 9)"), FAILS),
    "fork bomb": (_class("import os\n        while True: os.fork()"), FAILS),
    "subprocess": (_class("import subprocess; subprocess.run(['touch', '@OUT@'])"), FAILS),
    "os.system": (_class("import os; assert not os.system('touch @OUT@')"), FAILS),
    "socket": (_class("import socket; socket.socket()"), FAILS),
    "writes": (_class("open('@OUT@', 'w').write('x')"), FAILS),
    "writes at import": (_class(top="open('@OUT@', 'w').write('x')"), FAILS),
    "overwrites": (_class("open('@VICTIM@', 'w').write('x')"), FAILS),
    "removes": (_class("import os; os.remove('@VICTIM@')"), FAILS),
    "removes folders": (
        _class("import os, shutil; shutil.rmtree(os.path.dirname('@VICTIM@'))"), FAILS),
    "changes modes": (_class("import os; os.chmod('@VICTIM@', 0o777)"), HARMLESS),
    "reads": (_class("print(open('@VICTIM@').read())"), FAILS),
    "reads shadow": (_class("open('/etc/shadow').read()"), FAILS),
    "links": (_class("import os; os.symlink('/etc/shadow', '@OUT@')"), FAILS),
    "ctypes": (_class("import ctypes; ctypes.memset(8, 1, 1 << 20)"), FAILS),
    "libc by ctypes": (
        _class("import ctypes; ctypes.CDLL(None).system(b'touch @OUT@')"), HARMLESS),
    "memory": (_class("self.mass = bytearray(1 << 40)"), FAILS),
    "memory slowly": (
        _class("self.mass = [0]\n        while True: self.mass = self.mass * 2"), FAILS),
    "recursion": (_class("self.on_ack(ack)"), FAILS),
    "recursion without a limit": (
        _class("import sys; sys.setrecursionlimit(1 << 30); self.on_ack(ack)"), FAILS),
    "changes fullpipe": (
        _class(top="import fullpipe.base.errors as e\ne.UserError = SystemExit\n"
                   "import builtins; builtins.open = None"), HARMLESS),
    "threads": (
        _class(top="import threading\ndef spin():\n    while True: pass\n"
                   "threading.Thread(target=spin).start()"), HARMLESS),
    "atexit": (_class(top="import atexit\natexit.register(lambda: open('@OUT@', 'w'))"), HARMLESS),
    "signal handlers": (
        _class("import signal\n        for n in range(1, 32):\n            try: signal.signal(n, "
               "signal.SIG_IGN)\n            except (OSError, ValueError): pass\n"
               "        while True: pass"), FAILS),
    "generator": (_class("yield 1"), HARMLESS),
    "metaclass": (
        _class(top="class Meta(type(fullpipe.Controller)):\n    def __getattribute__(cls, name): "
                   "raise SystemExit(0)\n", body="    pass").replace(
            "(fullpipe.Controller):\n    pass", "(fullpipe.Controller, metaclass=Meta):\n    pass"
        ), FAILS),
    "__init_subclass__": (
        _class(top="class Base(fullpipe.Controller):\n    def __init_subclass__(cls):\n"
                   "        while True: pass\nclass Other(Base): pass"), FAILS),
    "settrace": (
        _class(top="import sys\ndef trace(*_): raise MemoryError\nsys.settrace(trace)"), HARMLESS),
    "prints": (_class("print('\\x1b]0;title\\x07' * 100)"), HARMLESS),
    "prints for ever": (_class("while True: print('x' * 1000)"), FAILS),
    "closes everything": (_class("import os; os.closerange(0, 1000)"), FAILS),
    "writes into every pipe": (
        _class("import os\n        for n in range(3, 64):\n            try: "
               "os.write(n, b'x' * 64)\n"
               "            except OSError: pass"), FAILS),
    "umask and limits": (
        _class("import os, resource; os.umask(0); "
               "resource.setrlimit(resource.RLIMIT_AS, (1 << 20, 1 << 20))"), HARMLESS),
    "another folder": (_class("import os; os.chdir('/'); open('x', 'w')"), FAILS),
    "BaseException": (
        _class("class Own(BaseException): pass\n        raise Own('x' * 10000)"), FAILS),
    "KeyboardInterrupt": (_class("raise KeyboardInterrupt"), FAILS),
    "an error that cannot be shown": (
        _class("class Own(Exception):\n            def __str__(self): raise SystemExit\n"
               "        raise Own"), FAILS),
    "a wrong type": (_class("self.ctl.cwnd = 'many'"), FAILS),
    "a huge integer": (_class("self.ctl.cwnd = 1 << 100000"), FAILS),
    "negative": (_class("self.ctl.cwnd = -1"), FAILS),
    "not a number": (_class("self.ctl.cwnd = float('nan')"), FAILS),
    "digits": (_class("str(10 ** 10 ** 8)"), FAILS),
    "pickle": (
        _class("import pickle\n        class Own:\n            def __reduce__(self): "
               "return (__import__('os').system, ('touch @OUT@',))\n"
               "        assert not pickle.loads(pickle.dumps(Own()))"), FAILS),
    "deep expression": ("x = " + "(" * 5000 + ")" * 5000, FAILS),
    "deep minus": ("x = " + "-" * 100_000 + "1", FAILS),
    "NUL bytes": ("x = 1\0", "not a text file"),
    "forged constants": (
        _class(body="    beta = fullpipe.Constant(0.5, 0.1, 0.99, unit='\\x1b[2J' * 1000)\n"),
        HARMLESS),
    "descriptor": (
        _class(body="    @property\n    def title(self): raise SystemExit(0)\n"), HARMLESS),
    "flags that change": (
        _class(body="    class Flags(int):\n        def __and__(self, o): raise SystemExit\n"
                    "    flags = Flags(1)\n"), FAILS),
}  # fmt: skip


def write_class(name: str, folder: Path, out: Path, victim: Path) -> Path:
    """The file of an attack, called mine.py."""
    path = folder / "mine.py"
    text = CLASSES[name][0]
    path.write_text(text.replace("@OUT@", str(out)).replace("@VICTIM@", str(victim)))
    return path
