// Numbers as people read them, with three digits and a unit.
#ifndef COLCAST_SERVER_HTTP_PAGES_NUMBER_TEXT_H_
#define COLCAST_SERVER_HTTP_PAGES_NUMBER_TEXT_H_

#include <string>

namespace colcast::http {

// "0", "0.25", "12.3", "4.57k", "1.2M"; for counts and rates.
std::string CountText(double count);
// "980 B", "1.5 kB", "2.31 GB"; powers of 1000.
std::string BytesText(double bytes);
// "85 µs", "1.24 ms", "3.5 s".
std::string LatencyText(double microseconds);
// "12 s", "5 min 3 s", "2 h 10 min", "3 d 4 h".
std::string DurationText(double seconds);

}  // namespace colcast::http

#endif  // COLCAST_SERVER_HTTP_PAGES_NUMBER_TEXT_H_
