// Package head keeps the float samples that a process has stored within the last minutes, by
// series. Rules and panels that read a few minutes find them at once, without a search in each of
// the many segments and in the parts that these have been merged to.
//
// A head has all samples of some live objects in a range of time, or it is not used. It begins when
// recent samples are read often. From then on it gets each segment that the process stores, and it
// records each block that the process merges from them. So it has every sample of these objects
// after the floor; older ones are dropped. Objects that it did not get, of other processes or from
// before it began, end at some time. A read that begins after that time and after the floor finds
// all of its samples in the head.
//
// Segments wait in a head until they are merged. Its log records, for each segment in order of
// arrival, which series have samples in it. Part uses the log to extract exactly the samples of a
// set of segments.
//
// Series that get their samples together share their times. Each has its newest sample, and the
// differences that lead from there to older ones.
//
// A head has one sample of a series and time. If a segment has samples that are not later than all
// before of their series, or start timestamps, the head restarts and drops what it had. Series with
// native histograms are read elsewhere.
package head
