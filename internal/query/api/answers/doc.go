// Package answers encodes and sends the answers of queries with the bytes of upstream's JSON codec
// and upstream's compression, at less cost: in memory that is used again, on all processors, and
// large ones in parts.
//
// An API has Codec as its codec, renders statistics by Lending, and serves queries by Handler.
package answers
