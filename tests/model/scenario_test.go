package model

// Bounds of a state. All fields are arrays, so that states can be compared and copied.
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
	// like grouped, but the name depends only on the content, and the put is conditional on absence
	direct
)

// writeSpec is one write. Every write has one sample, of one of the points (a series at a
// timestamp).
type writeSpec struct {
	mode   mode
	point  int8
	copies int8 // queued: largest number of segments from deliveries of its message
	// direct: the number, from 1, of the earlier write whose content it repeats; 0 if it has its
	// own
	same int8
}

// scenario describes an exploration: the processes and the rules.
type scenario struct {
	name       string
	writes     []writeSpec
	dels       []uint8 // the points that each deletion covers, as a set
	batches    []set   // segments that a consumer may make of several messages
	compactors int
	merges     int8 // total commits of merges
	ticks      int8 // the trusted clock runs from 0 to this
	age        int8 // a message is delivered at most this many ticks after it was sent
	// with coarse times: a put takes effect at most this many ticks after its time
	slow       int8
	collectors int
	reader     bool // a reader that takes a step for its listing and another for the manifest
	forGood    bool // a breach counts only if no remaining tombstone could mend it
	rules      rules
}

// rules are the protocol's rules; each can be left out. The zero value is the protocol of
// docs/model.md.
type rules struct {
	old clocks // of the old protocol, which orders by machine clocks

	// Deletions.
	cover     cover
	roundDown bool // queued_through is rounded down
	// the deletion is acknowledged before the queue's clock has passed queued_through
	noWait       bool
	noListing    bool // listed segments are not sealed
	sealAgain    bool // a later deletion that lists a sealed segment replaces its number
	reuseNumbers bool // the next number is one above those of the existing tombstones
	// a deletion commits even if the manifest changed after its read
	noSwap bool

	// Compaction.
	noSourceCheck    bool // a commit does not check whether its sources are live
	noTombstoneCheck bool // a commit ignores tombstones that were added after its read
	throughAtCommit  bool // deletes_through is the newest tombstone at the commit, not at the read
	applyAll         bool // a merge applies every tombstone to every source
	anySources       bool // sources need not be adjacent in rank
	// tombstones are dropped even if live objects need them
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
	// the store's time has ticks; within a tick the random name decides. P3 holds for writes at
	// least a tick apart
	coarse bool
	tied   bool // ... for all writes

	// Closed merges.
	unsettled bool // coarse times: merges read segments of the tick in which they listed
	hasty     bool // merges ignore slow puts
	newBlocks bool // merges read blocks that are newer than their listing
}

// cover is how a deletion determines which live segments it covers.
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

// batch is which messages may become one segment, and the time of that segment.
type batch int8

const (
	batchWithinTick batch = iota // messages sent within one tick
	batchNewest                  // any, with the time of the newest
	batchOldest                  // any, with the time of the oldest
)

// directName is how a direct writer names its objects.
type directName int8

const (
	fresh directName = iota // every put has a new name
	// the content's name; a new one if that exists and is sealed or consumed
	derived
	derivedBlind // the content's name; the write succeeds if that exists
	// like derived, but it also reads the manifest after a successful put
	derivedChecked
	// like derivedChecked, but it also uses a new name if the object exists and is not the newest
	derivedRepeated
)

// clocks are the machine clocks of the old protocol: the possible readings of each kind of process,
// as offsets from the true time.
type clocks struct {
	writers, compactors, deleters []int8 // all nil: the protocol does not use them
}

func (c clocks) used() bool { return c.writers != nil }
