package otlp

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// The content types of requests and their answers.
const (
	Protobuf = "application/x-protobuf"
	JSON     = "application/json"
)

// Accepted is the ExportMetricsServiceResponse to a request of a content type, some of whose data
// points may have been refused. The text says why.
func Accepted(contentType string, rejected int64, text string) []byte {
	text = strings.ToValidUTF8(text, "�")
	if contentType == JSON {
		type partial struct {
			Rejected string `json:"rejectedDataPoints,omitempty"` // proto3's JSON form of an int64
			Text     string `json:"errorMessage"`
		}
		var out struct {
			Partial *partial `json:"partialSuccess,omitempty"`
		}
		if rejected > 0 || text != "" {
			out.Partial = &partial{Text: text}
			if rejected > 0 {
				out.Partial.Rejected = strconv.FormatInt(rejected, 10)
			}
		}
		return marshal(out)
	}
	if rejected == 0 && text == "" {
		return nil
	}
	// ExportMetricsServiceResponse: partial_success = 1, with rejected_data_points = 1,
	// error_message = 2.
	var partial []byte
	if rejected > 0 {
		partial = protowire.AppendVarint(protowire.AppendTag(partial, 1, protowire.VarintType), uint64(rejected))
	}
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), text)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial)
}

// Refused is the google.rpc.Status for a request of a content type that failed with an HTTP status.
func Refused(contentType string, status int, text string) []byte {
	code := rpcCode(status)
	text = strings.ToValidUTF8(text, "�")
	if contentType == JSON {
		return marshal(struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		}{code, text})
	}
	out := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), uint64(code))
	return protowire.AppendString(protowire.AppendTag(out, 2, protowire.BytesType), text)
}

func marshal(v any) []byte {
	out, _ := json.Marshal(v) // structs of texts and numbers only
	return out
}

// rpcCode is the google.rpc.Code that belongs to an HTTP status
// (https://cloud.google.com/apis/design/errors#handling_errors).
func rpcCode(status int) int {
	switch {
	case status == 401:
		return 16 // UNAUTHENTICATED
	case status == 403:
		return 7 // PERMISSION_DENIED
	case status == 413, status == 429:
		return 8 // RESOURCE_EXHAUSTED
	case status == 503:
		return 14 // UNAVAILABLE
	case status >= 500:
		return 13 // INTERNAL
	}
	return 3 // INVALID_ARGUMENT
}
