package compact

import (
	"context"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
)

// answersEvery is the time between two listings of a tenant's kept answers.
const answersEvery = time.Hour

// sweepAnswers deletes kept answers that are older than the settings allow, and the oldest beyond
// their bytes. It also deletes those from before the last deletion of series, since they may have
// what was deleted: at once, and once more when the queries that began before have ended. That is
// before any block is deleted that the deletion made superfluous. now is a time of the store's
// clock.
func (s *Stage) sweepAnswers(ctx context.Context, tenant string, m *catalog.Manifest, now time.Time, g *Garbage) error {
	deleted := ulid.Time(m.LastTombstone.Time())
	ended := deleted.Add(s.set.DeletionDelay)
	swept := s.memory.recall(tenant).answers
	if now.Sub(swept) < answersEvery && !swept.Before(deleted) && (!swept.Before(ended) || now.Before(ended)) {
		return nil
	}
	if !now.Before(ended) {
		deleted = ended
	}
	var all []objstore.Object
	for obj, err := range s.store.List(ctx, key.AnswersPrefix(tenant), "") {
		if err != nil {
			return err
		}
		if _, err := key.ParseAnswer(obj.Key); err == nil {
			all = append(all, obj)
		}
	}
	slices.SortFunc(all, func(a, b objstore.Object) int { return b.Modified.Compare(a.Modified) })
	var dead []string
	var kept, removed int64
	for _, obj := range all { // the newest first
		if kept+obj.Size > s.set.AnswersBytes || now.Sub(obj.Modified) > s.set.AnswersAge || !obj.Modified.After(deleted) {
			dead, removed = append(dead, obj.Key), removed+obj.Size
			continue
		}
		kept += obj.Size
	}
	if _, err := objstore.DeleteAll(ctx, s.store, dead); err != nil {
		return err
	}
	g.Answers.add(Count{int64(len(dead)), removed})
	s.memory.change(tenant, func(x *seen) { x.answers = now })
	return nil
}
