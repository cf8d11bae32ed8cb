// Package devstack runs what Waybill needs around it on one developer's
// machine: a private MariaDB or MySQL, a Temporal development server, the
// tables of a Phorge with rows as Phorge writes them, and a receiver that
// checks what arrives.
//
// It exists for `make run` and for tests. It refuses to be more than that:
// everything listens on 127.0.0.1, the database's root has no password, and
// nothing here is meant to hold data that anybody would miss.
//
// Every server it starts is a child process in a process group of its own (a
// terminal's Ctrl-C reaches only the parent, which then stops its children in
// the order it chooses) and, on Linux, dies with its parent.
//
// Floor 1: cmd/waybill, and the tests of every package through stacktest, may
// import it. It imports nothing of Waybill.
package devstack
