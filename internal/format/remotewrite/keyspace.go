package remotewrite

// KeySpace begins the texts of keys (Collector.Key) of one decoder, so that no two decoders give
// equal texts to different series. Texts of remote_write itself are label fields of its messages,
// which begin with a tag, 0x0a.
type KeySpace = byte

// The key spaces.
const (
	KeysOfAppender     KeySpace = 'A' // scrapes and rules
	KeysOfCSV          KeySpace = 'C'
	KeysOfOpenTSDB     KeySpace = 'D' // over HTTP
	KeysOfGraphite     KeySpace = 'G'
	KeysOfJSONLines    KeySpace = 'J'
	KeysOfLineProtocol KeySpace = 'L'
	KeysOfOTLP         KeySpace = 'O'
	KeysOfPushes       KeySpace = 'P'
	KeysOfStatsD       KeySpace = 'S'
	KeysOfText         KeySpace = 'T'
	KeysOfTelnet       KeySpace = 'U' // of OpenTSDB
	KeysOfDatadog      KeySpace = 'W'
)

// The compiler refuses a map with equal keys.
var _ = map[KeySpace]struct{}{
	KeysOfAppender: {}, KeysOfCSV: {}, KeysOfOpenTSDB: {}, KeysOfGraphite: {}, KeysOfJSONLines: {}, KeysOfLineProtocol: {},
	KeysOfOTLP: {}, KeysOfPushes: {}, KeysOfStatsD: {}, KeysOfText: {}, KeysOfTelnet: {}, KeysOfDatadog: {},
	0x0a: {},
}
