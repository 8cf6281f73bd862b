package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// tick is how long two writes of one point by two processes are apart (decision 011).
const tick = 3 * time.Second

// writer sends one request after another, about series of its own, and checks the answers.
type writer struct {
	world  *world
	rng    *rand.Rand
	books  []*book
	pushes *pushBook
}

// round is a write or, every fifth time, a push, or, every tenth time, a deletion, and a check of all
// series by one server.
func (w *writer) round(ctx context.Context, n int) error {
	var err error
	switch {
	case n%10 == 7:
		err = w.remove(ctx)
	case n%5 == 3:
		err = w.push(ctx)
	default:
		err = w.write(ctx)
	}
	if err != nil {
		return err
	}
	return w.check(ctx, w.world.servers[w.rng.IntN(2)])
}

// write writes some points, most of which were written before. Some follow the last write of the
// same points at once, if the same process takes them.
func (w *writer) write(ctx context.Context) error {
	b, s := w.books[w.rng.IntN(len(w.books))], w.world.servers[w.rng.IntN(2)]
	var at []int64
	for range 1 + w.rng.IntN(3) {
		at = append(at, w.world.times[w.rng.IntN(len(w.world.times))]/b.protocol.unit*b.protocol.unit)
	}
	for range 1 + w.rng.IntN(3) {
		if err := w.overwrite(ctx, b, s, at); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) overwrite(ctx context.Context, b *book, s *server, at []int64) error {
	i := s.current()
	for _, ts := range at {
		if p := b.at(ts); p.by != i.name {
			if err := sleep(ctx, tick-time.Since(p.last)); err != nil {
				return err
			}
		}
	}
	values := map[int64]value{}
	var points []sample
	for _, ts := range at {
		v := value(w.world.values.Add(1))
		values[ts] = v // of equal times the last counts
		points = append(points, sample{ts, v})
	}
	for ts, v := range values {
		b.note("%d := %s by %s", ts, v, i)
	}
	ok, err := w.send(ctx, s, i, b.protocol, b.protocol.path, b.protocol.encode(b.series, points))
	for ts, v := range values {
		b.wrote(ts, v, i.name, ok)
		b.note("%d := %s by %s, acknowledged: %t", ts, v, i, ok)
	}
	return err
}

// remove deletes a series, all of it or in a range.
func (w *writer) remove(ctx context.Context) error {
	b, s := w.books[w.rng.IntN(len(w.books))], w.world.servers[w.rng.IntN(2)]
	q, mint, maxt := url.Values{"match[]": {b.selector()}}, int64(0), int64(math.MaxInt64)
	if w.rng.IntN(2) == 0 {
		mint, maxt = w.world.times[w.rng.IntN(len(w.world.times))], w.world.times[w.rng.IntN(len(w.world.times))]
		mint, maxt = min(mint, maxt), max(mint, maxt)
		q.Set("start", seconds(mint))
		q.Set("end", seconds(maxt))
	}
	i := s.current()
	b.note("delete from %d to %d by %s", mint, maxt, i)
	ok, err := w.send(ctx, s, i, deletion, deletion.path+"?"+q.Encode(), nil)
	b.deleted(mint, maxt, ok)
	b.note("delete from %d to %d by %s, acknowledged: %t", mint, maxt, i, ok)
	return err
}

func seconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }

// send returns when a request is over, and reports whether it was acknowledged. If it was not, the
// process is killed, so that no part of the request takes effect later.
func (w *writer) send(ctx context.Context, s *server, i *incarnation, p *protocol, path string, body []byte) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.url+path, bytes.NewReader(body))
	if err != nil {
		return false, fmt.Errorf("make request: %w", err)
	}
	if p.contentType != "" {
		req.Header.Set("Content-Type", p.contentType)
	}
	code, text, err := w.world.do(req)
	w.world.count(p, err == nil && code/100 == 2)
	switch {
	case err == nil && code/100 == 2:
		return true, w.acknowledged()
	case err == nil && code/100 == 4:
		return false, fmt.Errorf("%s answers %d to %s: %s", i, code, path, text)
	case ctx.Err() != nil:
		return false, fmt.Errorf("%s does not answer: %w", i, ctx.Err())
	}
	return false, s.replace(i)
}

// killEvery is after how many acknowledgements a server is killed.
const killEvery = 100

func (w *writer) acknowledged() error {
	n := w.world.acknowledged.Add(1)
	if n%killEvery > 0 {
		return nil
	}
	s := w.world.servers[n/killEvery%2]
	return s.replace(s.current())
}

// check asks a server for all series of the writer.
func (w *writer) check(ctx context.Context, s *server) error {
	first, last := w.world.times[0], w.world.times[len(w.world.times)-1]
	for _, b := range w.books {
		got, from, err := w.world.ask(ctx, s, b.selector(), first, last)
		if err != nil {
			return err
		}
		points := map[int64]value{}
		for _, x := range got {
			points[x.ts] = x.v
		}
		if len(points) < len(got) {
			return fmt.Errorf("series %s: %s answers a time twice: %v", b.selector(), from, got)
		}
		if err := b.check(points, from); err != nil {
			return err
		}
	}
	now := time.Now()
	got, from, err := w.world.ask(ctx, s, w.pushes.selector(), now.Add(-2*wrong-patience).UnixMilli(), now.Add(2*wrong).UnixMilli())
	if err != nil {
		return err
	}
	return w.pushes.check(got, from)
}

// sample is a point of a request or of an answer.
type sample struct {
	ts int64 // ms
	v  value
}

// ask returns the samples of a selector between two times (ms), from the first process of the server
// that answers.
func (w *world) ask(ctx context.Context, s *server, selector string, from, to int64) ([]sample, string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	q := url.Values{"query": {fmt.Sprintf(`%s[%dms]`, selector, to-from+1000)}, "time": {seconds(to)}}
	var failure error
	for ctx.Err() == nil {
		i := s.current()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.url+"/api/v1/query?"+q.Encode(), nil)
		if err != nil {
			return nil, "", fmt.Errorf("make request: %w", err)
		}
		code, text, err := w.do(req)
		if err == nil && code == http.StatusOK {
			got, err := parse(text)
			return got, i.name, err
		}
		failure = fmt.Errorf("%s answers %d to a query: %s: %w", i, code, text, err)
		_ = sleep(ctx, 100*time.Millisecond) // the loop looks at ctx
	}
	return nil, "", errors.Join(ctx.Err(), failure)
}

func parse(text []byte) (got []sample, err error) {
	var answer struct {
		Data struct {
			Result []struct {
				Values     [][2]any
				Histograms []stamped
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	for _, r := range answer.Data.Result {
		for _, pair := range r.Values {
			v, err := strconv.ParseFloat(pair[1].(string), 64)
			if err != nil {
				return nil, fmt.Errorf("read answer: %w", err)
			}
			got = append(got, sample{milliseconds(pair[0].(float64)), value(v)})
		}
		for _, x := range r.Histograms {
			v, err := x.value()
			if err != nil {
				return nil, err
			}
			got = append(got, sample{milliseconds(x.seconds), v})
		}
	}
	return got, nil
}

func milliseconds(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }

// do sends a request and reads the answer.
func (w *world) do(req *http.Request) (code int, text []byte, err error) {
	res, err := w.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(res.Body)
	return res.StatusCode, text, err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
