package acceptance

import (
	"errors"
	"testing"

	"database/sql"

	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// never and forever are the properties that most rows of tests have.
const (
	never   = `{"retry":"never","transactionPHIDs":[],"triggerPHIDs":[],"silent":false,"secure":false}`
	forever = `{"retry":"forever","transactionPHIDs":[],"triggerPHIDs":[],"silent":false,"secure":false}`
)

func execSQL(t testing.TB, s *scenario.Site, query string, args ...any) {
	t.Helper()
	if _, err := s.DB.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatal(err)
	}
}

// insert writes a row as it is.
func insert(t testing.TB, s *scenario.Site, r devstack.Row) devstack.Row {
	t.Helper()
	stored, err := s.Insert(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// hook creates a hook.
func hook(t testing.TB, s *scenario.Site, uri string) devstack.Hook {
	t.Helper()
	h, err := s.CreateHook(t.Context(), devstack.Hook{Name: "acceptance", URI: uri})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// task creates a task, for rows to be about.
func task(t testing.TB, s *scenario.Site) string {
	t.Helper()
	phid, err := s.CreateTask(t.Context(), "PHID-USER-aaaaaaaaaaaaaaaaaaaa", "a task")
	if err != nil {
		t.Fatal(err)
	}
	return phid
}

// queue inserts a fresh row.
func queue(t testing.TB, s *scenario.Site, h devstack.Hook, object, properties string) devstack.Row {
	t.Helper()
	return insert(t, s, devstack.Row{HookPHID: h.PHID, ObjectPHID: object, Properties: properties})
}

// row reads a row.
func row(t testing.TB, s *scenario.Site, phid string) devstack.Row {
	t.Helper()
	r, err := s.Row(t.Context(), phid)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		t.Fatal(err)
	}
	return r
}

// await waits until a row has a status and a result.
func await(t testing.TB, s *scenario.Site, phid, status, result string) devstack.Row {
	t.Helper()
	var r devstack.Row
	scenario.Until(t, patience, func() string {
		return "row " + phid + " is " + status + "/" + result + "; it is " + r.Status + "/" + r.LastResult + " " + r.Properties
	}, func() bool {
		r = row(t, s, phid)
		return r.Status == status && r.LastResult == result
	})
	return r
}

// ended is what a row's properties say about how its last attempt ended.
func ended(r devstack.Row) string {
	_, errors := splitErrors(r.Properties)
	return errors
}

// httpError and its like are what ended returns.
const timedOut = `,"errorType":"timeout","errorCode":28}`

func httpError(code string) string { return `,"errorType":"http","errorCode":` + code + `}` }

func hookError(code string) string { return `,"errorType":"hook","errorCode":"` + code + `"}` }
