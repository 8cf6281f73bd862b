// Package answers encodes and sends the answers of queries with the bytes of upstream's JSON codec
// at less cost: in memory that is used again, on all processors, and large ones in parts. It
// compresses small ones as upstream does, and large ones faster.
//
// An API has Codec as its codec, renders statistics by Lending, and serves queries by Handler.
package answers
