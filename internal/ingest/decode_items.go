package ingest

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/prometheus/prometheus/model/exemplar"
	"github.com/prometheus/prometheus/model/histogram"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"

	"github.com/promlake/promlake/internal/segment"
)

// addFloat adds a sample if its times are allowed.
func (d *decoder) addFloat(t int64, v float64, st int64) {
	err := d.hor.check(t)
	if err == nil && st != 0 {
		err = d.hor.checkStart(st)
	}
	if err != nil {
		d.rejectSamples(err, 1)
		return
	}
	d.room -= costFloat
	d.out.addFloat(t, v, st)
}

// rejectSamples notes that n samples of a series were refused.
func (d *decoder) rejectSamples(err error, n int) {
	d.room -= costOffence
	d.out.reject(err)
	var r *Rejection
	if errors.As(err, &r) {
		d.discard(r.Reason, n)
	}
}

// addHistogram reads a Histogram message; those of 1.0 and 2.0 share their field numbers.
func (d *decoder) addHistogram(b []byte) error {
	if d.room -= costHistogram + costBucket*int64(len(b)); d.room < 0 {
		if err := d.full(); err != nil {
			return err
		}
	}
	var m writev2.Histogram
	if err := m.Unmarshal(b); err != nil {
		return fmt.Errorf("histogram: %w", err)
	}
	if err := cmp.Or(d.hor.check(m.Timestamp), d.hor.checkStart(m.StartTimestamp)); err != nil {
		d.rejectSamples(err, 1)
		return nil
	}
	h, err := convertHistogram(&m)
	if err != nil {
		d.rejectSamples(&Rejection{reasonHistogram, fmt.Errorf("histogram at %d ms: %w", m.Timestamp, err)}, 1)
		return nil
	}
	d.out.hists = append(d.out.hists, histSample{Hist: h})
	return nil
}

// convertHistogram checks a histogram as Prometheus does, and lowers resolutions that only later versions know.
func convertHistogram(m *writev2.Histogram) (segment.Hist, error) {
	h := segment.Hist{ST: m.StartTimestamp, T: m.Timestamp}
	tooFine := histogram.IsExponentialSchemaReserved(m.Schema) && m.Schema > histogram.ExponentialSchemaMax
	if m.IsFloatHistogram() {
		h.FH = m.ToFloatHistogram()
		if tooFine {
			if err := h.FH.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
				return h, err
			}
		}
		return h, h.FH.Validate()
	}
	h.H = m.ToIntHistogram()
	if tooFine {
		if err := h.H.ReduceResolution(histogram.ExponentialSchemaMax); err != nil {
			return h, err
		}
	}
	return h, h.H.Validate()
}

// addExemplar adds an exemplar whose labels are in d.labels.
func (d *decoder) addExemplar(t int64, v float64) {
	if err := d.hor.check(t); err != nil {
		d.rejectExemplar(err)
		return
	}
	if len(d.labels) > d.limits.MaxLabelNames {
		d.rejectExemplar(fmt.Errorf("more label names than the limit of %d", d.limits.MaxLabelNames))
		return
	}
	d.scratch.Reset()
	for _, l := range d.labels {
		if err := d.limits.checkLabel(l); err != nil {
			d.rejectExemplar(err)
			return
		}
		d.scratch.Add(l.Name, l.Value)
	}
	d.scratch.Sort()
	lset := d.scratch.Labels()
	if name, dup := lset.HasDuplicateLabelNames(); dup {
		d.rejectExemplar(fmt.Errorf("duplicate label name %s", shown(name)))
		return
	}
	d.room -= costExemplar + int64(lset.ByteSize())
	// With the default build of the labels package a built set is a string of its own, independent of the message's bytes.
	d.out.exemplars = append(d.out.exemplars, exemplarSample{Exemplar: exemplar.Exemplar{Labels: lset, Value: v, Ts: t, HasTs: true}})
}

func (d *decoder) rejectExemplar(err error) {
	d.room -= costOffence
	d.out.reject(&Rejection{reasonExemplar, fmt.Errorf("exemplar: %w", err)})
	d.discard(reasonExemplar, 0)
}
