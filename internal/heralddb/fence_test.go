package heralddb_test

import (
	"testing"

	"waybill/internal/devstack"
	"waybill/internal/herald"
)

func TestFinishWritesTheVerdict(t *testing.T) {
	f := newFixture(t)
	all := verdicts()
	for _, name := range sorted(all) {
		t.Run(name, func(t *testing.T) {
			v := all[name]
			r := f.insert(devstack.Row{Created: now - 9, Properties: `{"retry":"forever","own":{"x":[1.0]}}`})
			c := f.claim(f.at(now-3), r)
			w := result(t, c, v, r.Properties)
			if out := f.finish(f.at(now), w); out != herald.Written {
				t.Fatalf("outcome %s", out)
			}
			want := r
			want.Status, want.LastResult, want.Properties = string(v.Status), string(v.Result), string(w.Properties)
			want.Modified = now
			if v.Completed {
				want.LastEpoch = now
			}
			if got := f.row(r.PHID); got != want {
				t.Errorf("row %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestFinishTakesAGivenMomentOfCompletion(t *testing.T) {
	f := newFixture(t)
	r := f.insert(devstack.Row{Created: now - 900})
	c := f.claim(f.at(now-600), r)
	w := result(t, c, herald.Decide(herald.Answer{HTTPStatus: 200}, true), r.Properties)
	w.Epoch = now - 590
	if out := f.finish(f.at(now), w); out != herald.Written {
		t.Fatalf("outcome %s", out)
	}
	if got := f.row(r.PHID); got.LastEpoch != now-590 || got.Modified != now {
		t.Errorf("row %+v", got)
	}
}

// Created, claimed and failed within one second: the row ends two above its
// epoch, and that is no claim.
func TestSameSecondFailureIsNotTakenForAClaim(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	r := f.insert(devstack.Row{})
	c := f.claim(d, r)
	f.finish(d, result(t, c, herald.Decide(herald.Answer{HTTPStatus: 500}, true), r.Properties))
	s, err := d.Load(t.Context(), uint64(r.ID))
	f.must(err)
	if got := s.Request; got.Modified != now+2 || got.LastEpoch != now || got.Claimed() {
		t.Errorf("row %+v, claimed %v", got, got.Claimed())
	}
	due, err := f.at(now+backoff).Due(t.Context(), f.hook.PHID, 10)
	f.must(err)
	if len(due) != 1 || due[0].Claimed {
		t.Errorf("due after the backoff: %+v", due)
	}
	// The next claim is one again, in the same second too.
	c, won, err := d.Claim(t.Context(), uint64(r.ID), now+2, herald.Lock{})
	f.must(err)
	if s, err = d.Load(t.Context(), uint64(r.ID)); err != nil || !won || !s.Request.Claimed() {
		t.Errorf("claim %+v (%v) on %+v: %v", c, won, s.Request, err)
	}
}

func TestFenceLeavesOtherWritersAlone(t *testing.T) {
	f := newFixture(t)
	all := verdicts()
	for _, name := range sorted(all) {
		for what, change := range map[string]string{
			// PHP writes stale columns and its own idea of the time.
			"PHP sent it":                    "status = 'sent', lastRequestResult = 'okay'",
			"PHP failed it":                  "status = 'failed'",
			"PHP saved it in between":        "dateModified = dateModified + 1",
			"PHP saved an older time":        "dateModified = dateModified - 1",
			"another Waybill has claimed it": "dateModified = dateModified + 30",
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				r := f.insert(devstack.Row{Created: now - 9})
				c := f.claim(f.at(now-3), r)
				f.exec("UPDATE "+f.table()+" SET "+change+" WHERE id = ?", r.ID)
				before := f.row(r.PHID)
				out := f.finish(f.at(now), result(t, c, all[name], r.Properties))
				if after := f.row(r.PHID); out != herald.Fenced || after != before {
					t.Errorf("outcome %s, row %+v\nwant it left as %+v", out, after, before)
				}
			})
		}
	}
}

// Every write whose acknowledgement was lost is repeated, by the process that
// sent and by a write-back: the repeats are successes and change nothing.
func TestRepeatedWriteIsSuccess(t *testing.T) {
	f := newFixture(t)
	all := verdicts()
	for _, name := range sorted(all) {
		t.Run(name, func(t *testing.T) {
			r := f.insert(devstack.Row{Created: now - 9})
			w := result(t, f.claim(f.at(now-3), r), all[name], r.Properties)
			f.finish(f.at(now), w)
			stands := f.row(r.PHID)
			late := w
			if all[name].Completed {
				late.Epoch = now - 1
			}
			for _, again := range []herald.ResultWrite{w, late} {
				if out := f.finish(f.at(now+5), again); out != herald.Written {
					t.Errorf("repeat: %s", out)
				}
			}
			if got := f.row(r.PHID); got != stands {
				t.Errorf("row %+v\nwant %+v", got, stands)
			}
		})
	}
}

func TestRepeatedWriteIsSuccessAfterTheNextClaim(t *testing.T) {
	f := newFixture(t)
	r := f.insert(devstack.Row{Created: now - 9})
	w := result(t, f.claim(f.at(now-3), r), verdicts()["to be retried"], r.Properties)
	f.finish(f.at(now), w)
	next := f.claim(f.at(now+backoff), f.row(r.PHID))
	if out := f.finish(f.at(now+backoff), w); out != herald.Written {
		t.Errorf("repeat: %s", out)
	}
	if got := f.row(r.PHID).Modified; got != next.Version {
		t.Errorf("the next claim was disturbed: version %d, want %d", got, next.Version)
	}
}

// A second failure looks exactly like the first one. When its claim has been
// overtaken it must not be taken for written.
func TestRepeatedFailureIsNotTakenForItsPredecessor(t *testing.T) {
	f := newFixture(t)
	v := verdicts()["to be retried"]
	r := f.insert(devstack.Row{Created: now - 9})
	first := result(t, f.claim(f.at(now-3), r), v, r.Properties)
	f.finish(f.at(now), first)
	// Retried as soon as the shortest backoff allows, then overtaken.
	second := result(t, f.claim(f.at(now+3), f.row(r.PHID)), v, string(first.Properties))
	second.Before = now
	f.claim(f.at(now+3+lease), f.row(r.PHID))
	if out := f.finish(f.at(now+4+lease), second); out != herald.Fenced {
		t.Errorf("outcome %s", out)
	}
}

func TestCollectedUnderWay(t *testing.T) {
	f := newFixture(t)
	d := f.at(now)
	r := f.insert(devstack.Row{})
	c := f.claim(d, r)
	f.must(f.phorge.Collect(t.Context(), r.PHID))
	for name, v := range verdicts() {
		if out := f.finish(d, result(t, c, v, r.Properties)); out != herald.Collected {
			t.Errorf("%s: %s", name, out)
		}
	}
}
