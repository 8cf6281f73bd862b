package ingest

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
)

// InfluxVersion is a version of InfluxDB's HTTP API for writing. The versions differ in their
// parameters and in the form of their errors:
//
//	https://docs.influxdata.com/influxdb/v1/tools/api/#write-http-endpoint
//	https://docs.influxdata.com/influxdb/v2/api/v2/#operation/PostWrite
//	https://docs.influxdata.com/influxdb3/core/api/v3/#operation/PostWriteLP
type InfluxVersion int

// The versions.
const (
	InfluxV1 InfluxVersion = 1
	InfluxV2 InfluxVersion = 2
	InfluxV3 InfluxVersion = 3
)

// stringsSkipped is the header with the number of string fields that were left out.
const stringsSkipped = "X-Promlake-Strings-Skipped"

// LineHandler serves POST requests with the line protocol.
func (s *Stage) LineHandler(version InfluxVersion) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, found, err := s.lines(r, version)
		if err == nil {
			_, err = s.write(w, r, p)
		}
		code := s.answered(w, err, "influx")
		if found.skipped > 0 {
			w.Header().Set(stringsSkipped, strconv.Itoa(found.skipped))
		}
		if err == nil {
			w.WriteHeader(code)
			return
		}
		text := s.public(r, err, code)
		var answer any
		switch version {
		case InfluxV2:
			answer = map[string]string{"code": influxCode(code), "message": text}
		default:
			w.Header().Set("X-Influxdb-Error", strings.ToValidUTF8(strings.ReplaceAll(text, "\n", " "), "�"))
			if answer = influxAnswer(err, found.refused); answer == nil {
				answer = map[string]string{"error": text}
			}
		}
		answerJSON(w, code, answer)
	})
}

// influxCode is the error code of InfluxDB 2 for an HTTP status.
func influxCode(status int) string {
	switch status {
	case http.StatusBadRequest, http.StatusUnsupportedMediaType:
		return "invalid"
	case http.StatusRequestEntityTooLarge:
		return "request too large"
	case http.StatusTooManyRequests:
		return "too many requests"
	case http.StatusServiceUnavailable:
		return "unavailable"
	}
	return "internal error"
}

// errParameter reports a parameter of a request that is not allowed.
type errParameter struct{ error }

// linesFound is what the answer to a request with the line protocol says of its lines.
type linesFound struct {
	skipped int             // string fields
	refused []influxOffence // of version 3: the first maxOffences
}

// lines is the protocol of a request with the line protocol, and what is found, once it is decoded.
func (s *Stage) lines(r *http.Request, version InfluxVersion) (p wireFormat, found *linesFound, err error) {
	found = &linesFound{}
	query := r.URL.Query()
	p.form = "text"
	precision := query.Get("precision")
	if version == InfluxV3 && precision == "" {
		precision = "auto"
	}
	unit, err := lineprotocol.ParsePrecision(precision)
	if err != nil {
		return p, found, errParameter{err}
	}
	if version == InfluxV3 {
		p.list = maxOffences
	}
	if v := query.Get("accept_partial"); version == InfluxV3 && v != "" {
		partial, err := strconv.ParseBool(v)
		if err != nil {
			return p, found, errParameter{fmt.Errorf("accept_partial %q is neither true nor false", v)}
		}
		p.whole = !partial
	}
	database := query.Get("db")
	if version == InfluxV2 {
		database = query.Get("bucket")
	}
	p.decode = func(msg []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (b *remotewrite.Batch, err error) {
		b, found.skipped, err = lineprotocol.Decode(lineprotocol.Request{Body: msg, Naming: s.set.Lines, Database: database, Precision: unit, Came: came}, g, rules, room)
		if err == nil && len(b.Offences) > 0 {
			found.refused = influxOffences(msg, b.Offences)
		}
		return b, err
	}
	return p, found, nil
}

// InfluxPing answers /ping, by which clients of InfluxDB see whether a server is there.
func InfluxPing() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Influxdb-Version", "1.8.0-promlake")
		w.Header().Set("X-Influxdb-Build", "OSS")
		w.WriteHeader(http.StatusNoContent)
	})
}

// InfluxQuery answers the two statements of InfluxQL that clients send before they write: SHOW
// DATABASES, with the database of the request, and CREATE DATABASE, since a database needs no
// creation.
func InfluxQuery() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		type result struct {
			Statement int   `json:"statement_id"`
			Series    []any `json:"series,omitempty"`
		}
		statement := strings.Join(strings.Fields(strings.TrimSuffix(strings.TrimSpace(r.FormValue("q")), ";")), " ")
		one := result{}
		switch upper := strings.ToUpper(statement); {
		case upper == "SHOW DATABASES":
			values := [][]string{}
			if db := r.FormValue("db"); db != "" {
				values = append(values, []string{db})
			}
			one.Series = []any{map[string]any{"name": "databases", "columns": []string{"name"}, "values": values}}
		case strings.HasPrefix(upper, "CREATE DATABASE "):
		default:
			answerJSON(w, http.StatusBadRequest, map[string]string{"error": "only SHOW DATABASES and CREATE DATABASE are answered; /api/v1/query answers PromQL"})
			return
		}
		answerJSON(w, http.StatusOK, map[string]any{"results": []result{one}})
	})
}
