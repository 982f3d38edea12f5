/*
 * vdso-time's clocks for std::chrono, in C++11 and later.
 *
 * If a sandbox denies every way to read a clock, now() ends the program with std::terminate(). The
 * functions of vdso_time.h and vdso_time_counter.h return the error instead. MIT or Apache-2.0.
 */

#ifndef VDSO_TIME_HPP
#define VDSO_TIME_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <time.h>

#include "vdso_time.h"
#include "vdso_time_counter.h"

namespace vdso_time {

/* What the clocks have in common. `Epoch` is the clock to which their time points belong. */
template <class Epoch, bool IsSteady>
struct basic_clock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<Epoch, duration>;
    static constexpr bool is_steady = IsSteady;

protected:
    static time_point read(clockid_t clock) noexcept
    {
        vdso_timespec now;
        if (vdso_time_clock_gettime(clock, &now) != 0)
            std::terminate();
        return time_point(std::chrono::seconds(now.tv_sec) + duration(now.tv_nsec));
    }
};

/* Before C++17 a static member that is bound to a reference needs a definition. */
#if __cplusplus < 201703L
template <class Epoch, bool IsSteady>
constexpr bool basic_clock<Epoch, IsSteady>::is_steady;
#endif

/* CLOCK_MONOTONIC. Its time points belong to std::chrono::steady_clock, for wait_until(). */
struct steady_clock : basic_clock<std::chrono::steady_clock, true> {
    static time_point now() noexcept { return read(CLOCK_MONOTONIC); }
};

/*
 * CLOCK_REALTIME. Its time points belong to std::chrono::system_clock, and have nanoseconds.
 * std::chrono::system_clock::time_point has microseconds in libc++, so convert to it with
 * std::chrono::time_point_cast<std::chrono::system_clock::duration>.
 */
struct system_clock : basic_clock<std::chrono::system_clock, false> {
    static time_point now() noexcept { return read(CLOCK_REALTIME); }
};

/*
 * CLOCK_MONOTONIC at the last timer tick, which was usually at most 10 ms ago. The times of this
 * clock lag the times of steady_clock, so the time points have a type of their own, which cannot be
 * mixed with the types of other clocks. to_steady() converts a time point to one of steady_clock,
 * for wait_until().
 */
struct coarse_clock : basic_clock<coarse_clock, true> {
    static time_point now() noexcept { return read(CLOCK_MONOTONIC_COARSE); }
    static steady_clock::time_point to_steady(time_point time) noexcept
    {
        return steady_clock::time_point(time.time_since_epoch());
    }
};

/*
 * CLOCK_MONOTONIC, read from the CPU's counter (vdso_time_counter.h). The time points of this clock
 * have a type of their own, which cannot be mixed with the types of other clocks. to_steady()
 * converts a time point to one of steady_clock, for wait_until().
 */
struct counter_clock : basic_clock<counter_clock, true> {
    static time_point now() noexcept
    {
        const std::int64_t nanoseconds = vdso_time_counter_monotonic();
        if (nanoseconds < 0)
            std::terminate();
        return time_point(duration(nanoseconds));
    }
    static steady_clock::time_point to_steady(time_point time) noexcept
    {
        return steady_clock::time_point(time.time_since_epoch());
    }
};

}

#endif
