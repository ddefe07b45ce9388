// STRUCT(type, n, members...): convert() of a structure, in namespace selvage::xdr.
#pragma once

// One line per structure: its members by name, the same in RFC, ours and the reference.
#define EACH_1(a) convert(from.a, to.a);
#define EACH_2(a, ...) EACH_1(a) EACH_1(__VA_ARGS__)
#define EACH_3(a, ...) EACH_1(a) EACH_2(__VA_ARGS__)
#define EACH_4(a, ...) EACH_1(a) EACH_3(__VA_ARGS__)
#define EACH_5(a, ...) EACH_1(a) EACH_4(__VA_ARGS__)
#define EACH_6(a, ...) EACH_1(a) EACH_5(__VA_ARGS__)
#define EACH_7(a, ...) EACH_1(a) EACH_6(__VA_ARGS__)
#define EACH_8(a, ...) EACH_1(a) EACH_7(__VA_ARGS__)
#define EACH_9(a, ...) EACH_1(a) EACH_8(__VA_ARGS__)
#define EACH_10(a, ...) EACH_1(a) EACH_9(__VA_ARGS__)
#define EACH_11(a, ...) EACH_1(a) EACH_10(__VA_ARGS__)
#define EACH_12(a, ...) EACH_1(a) EACH_11(__VA_ARGS__)
#define EACH_13(a, ...) EACH_1(a) EACH_12(__VA_ARGS__)
#define STRUCT(type, n, ...)                          \
  inline void convert(const type& from, ::type& to) { \
    EACH_##n(__VA_ARGS__)                             \
  }
