package query

import (
	"context"
	"fmt"

	"github.com/promlake/promlake/internal/query/plan"
)

// openScans are the scans of a statement, whose files are open until release.
type openScans struct {
	scans    []plan.Scan // parallel to the leaves
	keys     []string    // of the objects
	releases []func()
}

func (o *openScans) release() {
	for _, r := range o.releases {
		r()
	}
}

// open plans and opens what the leaves of a subtree read.
func (p *pushing) open(ctx context.Context, s *plan.Pushed) (*openScans, error) {
	out := &openScans{}
	for _, l := range s.Leaves {
		scan, err := p.scanOf(l)
		if err == nil {
			p.stage.count(ctx, scan.totals())
			err = out.add(ctx, p.stage.files, scan)
		}
		if err != nil {
			out.release()
			return nil, err
		}
	}
	return out, nil
}

// wanted returns the resolution of a leaf's selector and the positions in it of the series that are left to the leaf, which are some of them, in the
// same order.
func (p *pushing) wanted(l *plan.Leaf) (res *resolution, wanted []int, err error) {
	res = p.resolved[l.Selector.Expr]
	if res == nil {
		return nil, nil, fmt.Errorf("plan the read of %s: its series are not known", l)
	}
	wanted = make([]int, 0, len(l.Resolution.Series))
	i := 0
	for _, s := range l.Resolution.Series {
		for i < len(res.series) && res.series[i].id != s.ID {
			i++
		}
		if i == len(res.series) {
			return nil, nil, fmt.Errorf("plan the read of %s: series %s is not among those of its selector", l, s.Labels)
		}
		wanted = append(wanted, i)
	}
	return res, wanted, nil
}

// scanOf plans the read of a leaf in SQL.
func (p *pushing) scanOf(l *plan.Leaf) (*leafScan, error) {
	res, wanted, err := p.wanted(l)
	if err != nil {
		return nil, err
	}
	mint, maxt := l.Range()
	return newLeafScan(res, wanted, mint, maxt), nil
}

// add opens the files of a scan.
func (o *openScans) add(ctx context.Context, f *files, s *leafScan) error {
	var needs []rowsNeed
	var of []*fileRows
	for i := range s.blocks {
		for j := range s.blocks[i].files {
			file := &s.blocks[i].files[j]
			needs, of = append(needs, file.need), append(of, file)
			o.keys = append(o.keys, file.need.key)
		}
	}
	local, release, err := f.openRows(ctx, needs)
	if err != nil {
		return err
	}
	o.releases = append(o.releases, release)
	for i := range of {
		of[i].local = local[i]
	}
	paths := make([]string, len(s.res.objs))
	releases := make([]func(), len(s.segments))
	err = f.each(ctx, len(s.segments), func(ctx context.Context, i int) (err error) {
		o := &s.res.objs[s.segments[i].object]
		paths[s.segments[i].object], releases[i], err = f.open(ctx, o.series, o.size)
		return err
	})
	for i, r := range releases {
		if r != nil {
			o.releases, o.keys = append(o.releases, r), append(o.keys, s.res.objs[s.segments[i].object].series)
		}
	}
	if err != nil {
		return err
	}
	o.scans = append(o.scans, s.scan(paths))
	return nil
}
