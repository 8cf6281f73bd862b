package promblock

// CheckBuckets is checkBuckets.
var CheckBuckets = checkBuckets
