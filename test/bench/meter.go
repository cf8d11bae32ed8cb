package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what was used up to a moment: CPU of the processes, and what the
// database was asked and read.
type usage struct {
	at                        time.Time
	serve, database, temporal time.Duration
	statements, reads         int64
}

// meter reads usage; the difference of two is what happened between them.
type meter struct {
	stack     *stack
	db        *sql.DB
	processes []*process
}

// spent is a difference of two usages.
type spent struct {
	took time.Duration
	usage
}

// read takes the figures. Its own two statements are taken off by since.
func (m meter) read(ctx context.Context) (usage, error) {
	u := usage{at: m.stack.now()}
	for _, p := range m.processes {
		u.serve += cpuOf(p.cmd.Process.Pid)
	}
	u.database, u.temporal = cpuOf(child("mariadbd")), cpuOf(child("temporal"))
	rows, err := m.db.QueryContext(ctx, "SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Handler_read%' OR Variable_name = 'Questions'")
	if err != nil {
		return u, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return u, err
		}
		if name == "Questions" {
			u.statements = n
		} else {
			u.reads += n
		}
	}
	return u, rows.Err()
}

// since reads again and takes off what there was before, and what a reading
// itself costs (measured: two readings in a row).
func (m meter) since(ctx context.Context, before usage) (spent, error) {
	now, err := m.read(ctx)
	if err != nil {
		return spent{}, err
	}
	again, err := m.read(ctx)
	if err != nil {
		return spent{}, err
	}
	s := spent{took: now.at.Sub(before.at)}
	s.serve, s.database, s.temporal = now.serve-before.serve, now.database-before.database, now.temporal-before.temporal
	s.statements = now.statements - before.statements - 1
	s.reads = now.reads - before.reads - min(again.reads-now.reads, now.reads-before.reads)
	return s, nil
}

// Bounds of settle: how long the servers are watched at a time, what they may
// use of a core meanwhile, and how long that is waited for.
const (
	settleLook   = 250 * time.Millisecond
	settledShare = 0.06
	settleWithin = 20 * time.Second
)

// settle waits until both servers have done what was left over from before: a
// workflow's visibility records are written after it is answered, and starting
// a hundred hooks costs as much as a hundred deliveries.
func (s *stack) settle(ctx context.Context) error {
	pids := []int{child("mariadbd"), child("temporal")}
	used := func() (t time.Duration) {
		for _, pid := range pids {
			t += cpuOf(pid)
		}
		return t
	}
	for end := s.now().Add(settleWithin); ; {
		before := used()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleLook):
		}
		if used()-before <= time.Duration(settledShare*float64(settleLook)) {
			return nil
		}
		if s.now().After(end) {
			return errors.New("the servers do not come to rest")
		}
	}
}

// share is CPU time as a share of one core.
func (s spent) share(cpu time.Duration) float64 { return 100 * cpu.Seconds() / s.took.Seconds() }

// each is CPU time per delivery in milliseconds.
func each(cpu time.Duration, n int) float64 { return float64(cpu.Microseconds()) / 1000 / float64(n) }

// child finds the process that this one started under a name; 0: none. Both
// servers are children: devstack starts them without a shell.
func child(name string) int {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		head, rest, _ := strings.Cut(string(text), ") ")
		pid, comm, _ := strings.Cut(head, " (")
		fields := strings.Fields(rest)
		if comm == name && len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			n, _ := strconv.Atoi(pid)
			return n
		}
	}
	return 0
}

// peak is VmHWM and now VmRSS of a process in MiB; 0 where /proc is not.
func peak(pid int) (highest, now float64) {
	return status(pid, "VmHWM:"), status(pid, "VmRSS:")
}

func status(pid int, key string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key); ok {
			kib, _ := strconv.Atoi(strings.Fields(value)[0])
			return float64(kib) / 1024
		}
	}
	return 0
}

// others says what else was going on: processes that are not this run's and
// have the names of this repository's programs and tests.
func others() string {
	count := map[string]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range stats {
		comm, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		name := strings.TrimSpace(string(comm))
		switch {
		case strings.HasSuffix(name, ".test"):
			count["tests"]++
		case name == "compile", name == "link":
			count["compilers"]++
		case name == "waybill", name == "temporal", name == "mariadbd", name == "golangci-lint":
			count[name]++
		}
	}
	if len(count) == 0 {
		return "nothing of ours"
	}
	return strings.TrimPrefix(fmt.Sprint(count), "map")
}
