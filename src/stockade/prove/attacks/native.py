"""What attacks on the seal share: calls by number, memory, code made by hand, and programs to start.

Runs inside the worker: standard library only, nothing of Stockade. The code made here does one
thing: it writes the word into the witness file. So "arrived" is what the code did, not what the
attacker says of it.
"""

import ctypes
import os
import shutil
import struct

ON_X86 = os.uname().machine == "x86_64"
READ, WRITE, EXECUTE = 1, 2, 4
SHARED, PRIVATE, ANONYMOUS = 1, 2, 32
PAGE = 4096
SHELL = "/bin/sh"

# int f(int fd, const void *text, long size): write(2) takes the same arguments in the same registers.
CODE = bytes.fromhex("b8010000000f05c3" if ON_X86 else "080880d2010000d4c0035fd6")

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
for _function in (libc.mmap, libc.shmat):
    _function.restype = ctypes.c_void_p


def checked(result, what):
    """The C library's word for failure is -1, and for an address the same in 64 bits."""
    if result in (-1, None, 2**64 - 1):
        raise OSError(ctypes.get_errno(), what)
    return result


def system_call(number, *arguments):
    """A call by its numbers on x86-64 and on arm64, with whole machine words and pointers."""
    own = number if isinstance(number, int) else number[0 if ON_X86 else 1]
    words = [ctypes.c_ulong(word % 2**64) if isinstance(word, int) else word for word in arguments]
    return checked(libc.syscall(ctypes.c_long(own), *words), f"call {own}")


# --- memory ----------------------------------------------------------------------------------


def mapped(protection, flags=PRIVATE | ANONYMOUS, fd=-1):
    return checked(libc.mmap(None, PAGE, protection, flags, fd, ctypes.c_long(0)), "mmap")


def protect(address, protection):
    checked(libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(PAGE), protection), "mprotect")


def put(address):
    """Copy the code there."""
    ctypes.memmove(address, CODE, len(CODE))
    return address


def write_by(address, kit):
    """Call the code at that address: it writes the word into the witness file."""
    function = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_long)(address)
    witness = os.open(kit.facts["witness"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    text = kit.word.encode()
    return function(witness, text, len(text))


def own_function():
    """Where the C library's `labs` begins, a function that nothing here needs."""
    return ctypes.cast(libc.labs, ctypes.c_void_p).value


# --- processes ---------------------------------------------------------------------------------


def apart(kit, name, action, *arguments):
    """Do it in a process of its own, which may die of it; its error number, or 0, is the answer."""

    def attempt():
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                action(*arguments)
                code = 0
            except OSError as error:
                code = error.errno or 98
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if code > 0:
            raise OSError(code, os.strerror(code))
        return code

    return kit.do(name, attempt)


def copy_of_shell(path):
    """The shell's content under another name, and executable."""
    shutil.copy(SHELL, path)
    os.chmod(path, 0o755)
    return path


# --- an ELF file made by hand ---------------------------------------------------------------------


def library_that_writes(kit):
    """A shared object (elf(5), x86-64) whose initializer writes the word into the witness file."""
    witness, word = kit.facts["witness"].encode() + b"\0", kit.word.encode()
    code_at, texts_at, dynamic_at = 0x180, 0x200, PAGE  # the second page is written by the loader
    # open(witness, O_WRONLY|O_CREAT|O_APPEND, 0666); write(that, word, size); ret
    code = b"\xb8\x02\0\0\0\x48\x8d\x3d" + _word(texts_at - code_at - 12) + b"\xbe" + _word(0o2101)
    code += b"\xba" + _word(0o666) + b"\x0f\x05\x89\xc7"
    code += b"\xb8\x01\0\0\0\x48\x8d\x35" + _word(texts_at + len(witness) - (code_at + len(code) + 12))
    code += b"\xba" + _word(len(word)) + b"\x0f\x05\xc3"
    # DT_INIT, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, the end
    dynamic = struct.pack("<12Q", 12, code_at, 5, 0x3F0, 6, 0x3C0, 10, 1, 11, 24, 0, 0)
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, 4, 0, 0, 0)
    for kind, rights, at, length in ((1, 5, 0, PAGE), (1, 6, PAGE, len(dynamic)), (2, 6, PAGE, len(dynamic))):
        head += struct.pack("<IIQQQQQQ", kind, rights, at, at, at, length, length, PAGE if kind == 1 else 8)
    head += struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # a stack that is not executable
    image = bytearray(dynamic_at + len(dynamic))
    for at, part in ((0, head), (code_at, code), (texts_at, witness + word), (dynamic_at, dynamic)):
        image[at : at + len(part)] = part
    return bytes(image)


def _word(value):
    return struct.pack("<i", value)
