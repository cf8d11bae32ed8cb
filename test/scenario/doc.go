// Package scenario has the building blocks of tests that treat Waybill as a
// black box: the built program run as a process, a Phorge and a Temporal
// namespace of its own for each test, a receiver that keeps raw bytes, and a
// player of Phorge's own worker.
//
// It looks at Waybill only from outside: environment, signals, exit codes, log
// lines, HTTP, rows, locks and workflows. It refuses to reach into worker,
// starter or activities, and nothing but tests may import it.
package scenario
