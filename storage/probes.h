// USDT probes of the data path (provider "selvage"): for bpftrace, perf and SystemTap. A probe that
// nobody has attached to is one NOP. deploy/bpftrace has a script for each question.
//
//   write_plan(file, offset, length, reason, bounce, combiner)   reason: storage::PlanReason;
//                                          combiner: 0 outside of edge mode `assemble`
//   segment(file, offset, length, kind, result)   one part of a split WRITE has been written; kind:
//                                          storage::SegmentKind; result: bytes, or -errno
//   edge_ask(file, offset, length, boundary_pages, completing_pages)
//   edge_release(file, offset, written, outcome, complete)   outcome: cache::Outcome; complete:
//                                          bytes of pages that are complete and may leave the page
//                                          cache
//   batch(combiner, number, requests, waiting, runs, tails)   as planned: requests in it, waiting
//                                          for one more; O_DIRECT writes; buffered ends of file
//   batch_pages(combiner, number, whole, partial, reads)   of the same batch: edge pages written
//                                          whole, before they were whole, read from the device
//                                          first
//   sync_begin(queue, kind, requests), sync_end(queue, errno)   queue: of the file or
//                                          directory, or its combiner
//
// `file` is FileEdges::key; offsets and lengths are bytes.
#pragma once

#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

/// Up to 6 integers or pointers (bpftrace knows no more); each is evaluated even when nobody
/// listens.
#define SELVAGE_PROBE(name, ...) STAP_PROBEV(selvage, name, __VA_ARGS__)
