// Package head keeps the float samples that a process has stored within the last minutes, by
// series, so that rules and panels that read a few minutes find them at once: without a look at
// each of the many segments, and at the parts that they have been merged to.
//
// A head holds all samples of some live objects in a range of time, or it is not used. It begins
// when it is asked for often. From then on it knows each segment that the process stores, and each
// block that the process merges from them: no sample of these is missing, except those up to the
// floor, which are too old. Objects that it does not know, of other processes or of the time
// before, end somewhere. A read that begins after that and after the floor finds all of its samples
// in the head.
//
// Segments wait in a head until they are merged: it has their samples, and a log of which series
// each of them has samples of. So a Part has exactly the samples of some segments.
//
// Series that get their samples together share their times. Each has its newest sample, and the
// differences that lead from there to older ones.
//
// What a head holds has one sample of a series and time. If a segment has samples that are not
// later than all before of their series, or start timestamps, the head begins anew, and does not
// know what came before. Series with native histograms are read elsewhere.
package head
