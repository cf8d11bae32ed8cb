package faults

// onceFailed are seeds that have found something. What it was stands in
// docs/findings.md.
var onceFailed = []uint64{20010, 20066, 20073, 20087}
