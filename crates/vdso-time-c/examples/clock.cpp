// Reads each clock of vdso_time.hpp between two reads of std's clock, and fails if its time is not
// between their times.

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <type_traits>

#include <vdso_time.hpp>

using namespace std::chrono_literals;

namespace {

bool failed = false;

// Compares with std's clock. The clock may be `behind`, and `off` by its error.
template <class Clock, class Std, class Convert>
void check(const char *name, std::chrono::nanoseconds behind, std::chrono::nanoseconds off, Convert convert)
{
    static_assert(Clock::is_steady == Std::is_steady);
    static_assert(noexcept(Clock::now()));
#if __cplusplus >= 202002L && !defined(_LIBCPP_VERSION) // libc++ 14 has no is_clock_v
    static_assert(std::chrono::is_clock_v<Clock>);
#endif
    const auto before = Std::now();
    const auto now = convert(Clock::now());
    const auto after = Std::now();
    const bool is_between = before - behind - off <= now && now <= after + off;
    std::printf("%-14s %20lld%s\n", name, static_cast<long long>(now.time_since_epoch().count()),
                is_between ? "" : "  WRONG");
    failed = failed || !is_between;
}

}

int main()
{
    const auto same = [](auto time) { return time; };
    check<vdso_time::steady_clock, std::chrono::steady_clock>("steady_clock", 0ns, 0ns, same);
    // libc++'s wall clock has microseconds, rounded down.
    check<vdso_time::system_clock, std::chrono::system_clock>("system_clock", 0ns, 1us, same);
    check<vdso_time::coarse_clock, std::chrono::steady_clock>("coarse_clock", 20ms, 0ns,
                                                              vdso_time::coarse_clock::to_steady);
    check<vdso_time::counter_clock, std::chrono::steady_clock>("counter_clock", 0ns, 1ms,
                                                               vdso_time::counter_clock::to_steady);

    // Times of two clocks do not mix.
    static_assert(!std::is_convertible_v<vdso_time::coarse_clock::time_point, vdso_time::steady_clock::time_point>);
    static_assert(!std::is_convertible_v<vdso_time::counter_clock::time_point, vdso_time::coarse_clock::time_point>);

    // std's wait_until() accepts the deadline.
    std::mutex mutex;
    std::condition_variable event;
    std::unique_lock<std::mutex> lock(mutex);
    const auto deadline = vdso_time::steady_clock::now() + 5ms;
    while (event.wait_until(lock, deadline) != std::cv_status::timeout) {
    }
    const bool is_over = vdso_time::steady_clock::now() >= deadline;
    std::printf("wait_until     %s\n", is_over ? "waited" : "WRONG");
    return failed || !is_over;
}
