package model

// Bounds of a state. Everything is an array, so that states can be compared and copied.
const (
	maxWrites = 4
	maxSlots  = 8
	maxPoints = 2
	maxBlocks = 4
	maxDels   = 2
	maxComps  = 2
	maxGCs    = 2
)

type mode int8

const (
	grouped mode = iota // the writer puts a segment, then acknowledges
	// the writer acknowledges when the message is on the queue; consumers put segments
	queued
	// like grouped, but the name follows from the content, and the put is only if absent
	direct
)

// writeSpec is one write. Every write has one sample, of one of the points (a series at a
// timestamp).
type writeSpec struct {
	mode   mode
	point  int8
	copies int8 // queued: how many segments deliveries of its message may become
	// direct: the write before it, counted from 1, whose content it repeats; 0 if it has a content
	// of its own
	same int8
}

// scenario describes an exploration: the processes, and the rules that they keep.
type scenario struct {
	name       string
	writes     []writeSpec
	dels       []uint8 // the points that each deletion covers, as a set
	batches    []set   // segments that a consumer may make of several messages
	compactors int
	merges     int8 // commits of merges in all
	ticks      int8 // the trusted clock runs from 0 to this
	age        int8 // a message is delivered until this many ticks after it was sent
	// with coarse times: a put takes effect until this many ticks after the time that the store
	// gives it
	slow       int8
	collectors int
	reader     bool // a reader that takes a step for its listing and another for the manifest
	forGood    bool // a breach counts when no tombstone is left that could mend it
	rules      rules
}

// rules are the protocol, with each rule that can be left out. The zero value is the protocol that
// docs/model.md describes.
type rules struct {
	old clocks // of the protocol before, which orders by machine clocks

	// Deletions.
	cover     cover
	roundDown bool // queued_through is rounded down
	// the deletion is acknowledged before the queue's clock has passed queued_through
	noWait       bool
	noListing    bool // listed segments are not sealed
	sealAgain    bool // a later deletion that lists a sealed segment replaces its number
	reuseNumbers bool // the next number is one above the existing tombstones
	// the commit of a deletion does not notice that the manifest changed after its read
	noSwap bool

	// Compaction.
	noSourceCheck    bool // a commit does not check whether its sources are live
	noTombstoneCheck bool // a commit ignores tombstones that came after its read
	throughAtCommit  bool // deletes_through is the newest tombstone at the commit, not at the read
	applyAll         bool // a merge applies every tombstone to every source
	anySources       bool // sources need not be neighbours in rank
	// tombstones are dropped without regard to what live objects they apply to
	dropAtOnce   bool
	dropUnlisted bool // ... to queued segments without a seal
	dropYoung    bool // ... to messages that may still be delivered
	dropHasty    bool // ... to slow puts that are covered by their time

	// Queue and direct mode.
	mintAtConsume bool // a segment of a message has the rank of its put
	// a second delivery has a new send time, as if the message had been sent again
	resent   bool
	batch    batch
	unmarked bool       // a segment of a message is not marked as queued
	names    directName // direct mode

	// Order.
	// the store's times have ticks; within one, the name decides, which is random. P3 is promised
	// for writes a tick apart
	coarse bool
	tied   bool // ... for all writes

	// Closed merges.
	unsettled bool // coarse times: merges read segments of the tick in which they listed
	hasty     bool // merges ignore slow puts
	newBlocks bool // merges read blocks that are newer than their listing
}

// cover is how a deletion finds out which live segments it covers.
type cover int8

const (
	// read the manifest, list, then read the queue's time: listed segments are sealed, messages
	// sent until then are covered
	sealed       cover = iota
	listingFirst       // list and read the queue's time, then read the manifest
	timeFirst          // read the queue's time, read the manifest, list
	// read the manifest, then the time: segments put and messages sent until then are covered; no
	// listing
	byTime
)

// batch is which messages a consumer makes one segment of, and which time the segment has.
type batch int8

const (
	batchWithinTick batch = iota // those that were sent within one tick
	batchNewest                  // any, with the time of the newest
	batchOldest                  // any, with the time of the oldest
)

// directName is how a direct writer names its objects.
type directName int8

const (
	fresh directName = iota // every put has a new name
	// the content's name; a fresh one if that exists and is sealed or consumed
	derived
	derivedBlind // the content's name; if that exists, the write succeeds
	// as derived, and looks at the manifest after a put that succeeded as well
	derivedChecked
	// as derivedChecked, and if it is there and is not the newest object, a fresh one as well
	derivedRepeated
)

// clocks are the machine clocks that the old protocol trusts: the readings that each kind of
// process may get, as offsets to the true time.
type clocks struct {
	writers, compactors, deleters []int8 // all nil: the protocol does not use them
}

func (c clocks) used() bool { return c.writers != nil }
