// The settings of jemalloc, the process's allocator, which reads them before main(). What the
// environment variable MALLOC_CONF says comes after them.
//
// oversize_threshold: by default buffers of 8 MiB and more are given back to the system as soon as
// they are freed. To a graph with such tensors every request brought its page faults, which were
// two thirds of the time of DIN at 500 candidates.
// background_thread: gives back what has not been used for ten seconds, on a thread of its own;
// without it a freed model stays in memory as long as no request happens to use its arena.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "oversize_threshold:0,background_thread:true";
}
