"""Reads CLOCK_MONOTONIC with vdso-time between two reads with Python, and prints what each costs."""

import ctypes
import time
from timeit import repeat


class Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_int64), ("tv_nsec", ctypes.c_int64)]


library = ctypes.CDLL("libvdso_time.so.0.1")
library.vdso_time_counter_monotonic.restype = ctypes.c_int64

now = Timespec()
before = time.monotonic_ns()
error = library.vdso_time_clock_gettime(time.CLOCK_MONOTONIC, ctypes.byref(now))
after = time.monotonic_ns()
assert error == 0 and before <= now.tv_sec * 10**9 + now.tv_nsec <= after, (error, before, after)
print(f"monotonic {now.tv_sec}.{now.tv_nsec:09} s, counter {library.vdso_time_counter_monotonic()} ns")

library_read = "library.vdso_time_clock_gettime(time.CLOCK_MONOTONIC, address)"
address = ctypes.byref(now)
for read in ["time.monotonic_ns()", library_read]:
    print(f"{min(repeat(read, globals=globals(), number=10_000)) * 1e5:.0f} ns: {read}")
