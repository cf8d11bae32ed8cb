// Package faults is the fault campaign: seed by seed, processes of every role
// under load are killed, stopped and cut off, their servers restarted, wiped and
// put to another time, while receivers misbehave and Phorge's own workers want
// the same rows. Then everything heals, and what is left is judged: receivers'
// log, rows with all their versions, workflow histories, and what the processes
// still hold.
//
// A seed makes the same choices each time; what processes and machine make of
// them is their own. docs/findings.md says what the campaign found.
package faults
