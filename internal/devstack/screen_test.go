package devstack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"waybill/internal/columns"
)

const screenHook = "PHID-HWBH-aaaaaaaaaaaaaaaaaaaa"

// screenTest is a screen whose clock stands until the test moves it.
type screenTest struct {
	*Screen
	out  strings.Builder
	now  time.Time
	name string
}

func newScreenTest(cfg ScreenConfig) *screenTest {
	s := &screenTest{now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC), name: "healthy"}
	cfg.Out, cfg.Clock = &s.out, func() time.Time { return s.now }
	cfg.Hooks = func() []Hook { return []Hook{{PHID: screenHook, Name: s.name}} }
	s.Screen = NewScreen(cfg)
	return s
}

// attempt writes one attempt's log line as the log would.
func (s *screenTest) attempt(t *testing.T, rest string) {
	t.Helper()
	line := `{"level":"info","message":"attempt","hook":"` + screenHook + `",` + rest + "}\n"
	if n, err := s.Write([]byte(line)); n != len(line) || err != nil {
		t.Fatalf("wrote %d of %d: %v", n, len(line), err)
	}
}

func (s *screenTest) lines() []string {
	return strings.Split(strings.TrimSuffix(s.out.String(), "\n"), "\n")
}

const (
	sent   = `"attempt":1,"took":0.0123,"state":"recorded","status":"sent","error_type":"http","error_code":"200"`
	retry  = `"attempt":12,"took":15.04,"state":"recorded","status":"queued","error_type":"timeout","error_code":"28"`
	failed = `"attempt":1,"took":0.0001,"state":"unwritten","status":"failed","error_type":"http","error_code":"404"`
	lost   = `"attempt":3,"took":1.5,"state":"unknown","status":"","error_type":"","error_code":""`
)

func TestEachOutcomeHasALineOfItsOwn(t *testing.T) {
	s := newScreenTest(ScreenConfig{})
	for _, line := range []string{sent, retry, failed, lost} {
		s.attempt(t, line)
	}
	want := []string{
		"12:00:00  healthy               delivered   200             1      12 ms",
		"12:00:00  healthy               WILL RETRY  no answer      12     15.0 s",
		"12:00:00  healthy               GAVE UP     404             1     < 1 ms",
		"12:00:00  healthy               UNKNOWN     cut off         3      1.5 s",
	}
	for i, got := range s.lines() {
		if got != want[i] {
			t.Errorf("line %d\n got %q\nwant %q", i, got, want[i])
		}
	}
}

func TestStatesOfASendAreAllShown(t *testing.T) {
	for state, want := range map[string]kind{
		"recorded": delivered, "unwritten": delivered,
		"overtaken": unknown, "vanished": unknown, "unknown": unknown, "unsent": unknown,
	} {
		if got := (logEntry{State: state, Status: "sent"}).kind(); got != want {
			t.Errorf("%s is shown as %s, want %s", state, got, want)
		}
	}
}

func TestLinesStayWithin80ColumnsAndInTheirColumns(t *testing.T) {
	for _, name := range []string{
		"x", strings.Repeat("long ", 40), strings.Repeat("漢", 40), "a" + strings.Repeat("漢字", 20),
		strings.Repeat("🚚", 30), strings.Repeat("e\u0301", 40), "\x1b[31mred\x1b[0m\r\n\ttab", "\u202eevil\u200b", "\xff\xfe",
	} {
		s := newScreenTest(ScreenConfig{})
		s.name = name
		s.attempt(t, `"attempt":1234567,"took":98765.4,"state":"recorded","status":"queued","error_type":"hook","error_code":"some very long code"`)
		line := s.lines()[0]
		if n := columns.Of(line); n > 80 {
			t.Errorf("%q: %d columns", line, n)
		}
		before, _, found := strings.Cut(line, "WILL RETRY")
		if at := columns.Of(before); !found || at != 32 {
			t.Errorf("%q: the result begins in column %d, want 32", line, at)
		}
		if strings.ContainsAny(line, "\x1b\r\n\t\u202e") {
			t.Errorf("%q: control characters reach the terminal", line)
		}
	}
	if columns.Of(ScreenHead()) > 80 || strings.Index(ScreenHead(), "RESULT") != 32 {
		t.Errorf("the head does not fit: %q", ScreenHead())
	}
}

func TestTextsAreFittedByTheColumnsTheyTake(t *testing.T) {
	for _, test := range []struct {
		text    string
		columns int
		want    string
	}{
		{"ab", 4, "ab  "}, {"abcd", 4, "abcd"}, {"abcde", 4, "abc…"},
		{"漢", 4, "漢  "}, {"漢字", 4, "漢字"}, {"漢字x", 4, "漢…"}, {"漢字漢", 5, "漢字…"}, {"漢字漢", 4, "漢…"},
		{"e\u0301", 3, "e\u0301  "}, {"🚚", 3, "🚚 "}, {"a\x1bb", 3, "a?b"},
	} {
		got := fit(test.text, test.columns)
		if want := strings.TrimRight(test.want, " "); strings.TrimRight(got, " ") != want {
			t.Errorf("%q in %d columns: %q, want %q", test.text, test.columns, got, test.want)
		}
	}
	if got := fit("漢", 4); got != "漢  " {
		t.Errorf("filled to %q", got)
	}
}

func TestAFloodBecomesALinePerSecond(t *testing.T) {
	s := newScreenTest(ScreenConfig{})
	for range 3 {
		for range 50 {
			s.attempt(t, sent)
		}
		s.attempt(t, retry)
		s.now = s.now.Add(time.Second)
	}
	s.Tick() // a second after which nothing happens is summed up, too
	s.attempt(t, sent)
	s.now = s.now.Add(time.Second)
	s.Tick()
	s.attempt(t, sent)
	got := s.lines()[floodLines:]
	want := []string{
		"12:00:00  45 more in this second: 44 delivered, 1 WILL RETRY",
		"12:00:01  51 in this second: 50 delivered, 1 WILL RETRY",
		"12:00:02  51 in this second: 50 delivered, 1 WILL RETRY",
		"12:00:03  1 in this second: 1 delivered",
		"12:00:04  healthy               delivered   200             1      12 ms",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestQuietShowsNotesOnly(t *testing.T) {
	s := newScreenTest(ScreenConfig{Quiet: true})
	for range 100 {
		s.attempt(t, failed)
	}
	s.now = s.now.Add(time.Second)
	s.Tick()
	s.Say("still here")
	if got := s.out.String(); got != "still here\n" {
		t.Errorf("showed %q", got)
	}
}

func TestColoursOnlyWhereTheyAreWanted(t *testing.T) {
	for _, color := range []bool{false, true} {
		s := newScreenTest(ScreenConfig{Color: color})
		s.attempt(t, sent)
		s.attempt(t, retry)
		lines := s.lines()
		if strings.Contains(lines[0], "\x1b") || strings.Contains(lines[1], "\x1b[33m") != color {
			t.Errorf("color %v: %q", color, lines)
		}
	}
}

func TestNotesSayWhatIsWaitedFor(t *testing.T) {
	for message, want := range map[string]string{
		"hooks taken over from owners that did not hand them over, sending begins when their claims have run out": "" +
			"12:00:00  A process of Waybill was killed or cut off and may still be calling:\n" +
			"          4 hooks wait until 12:00:30 at the latest, to send nothing twice.\n",
		"breaker open: too many of the hook's requests failed, nothing is sent to it for now": "" +
			"12:00:00  healthy               rests until 12:00:30: it fails too often\n",
		"breaker closed: the hook's failures lie back far enough": "12:00:00  healthy               is called again\n",
		"listening": "",
	} {
		s := newScreenTest(ScreenConfig{Quiet: true})
		_, _ = fmt.Fprintf(s, `{"message":%q,"hook":%q,"hooks":4,"wait":30}`+"\nno JSON\n", message, screenHook)
		if got := s.out.String(); got != want {
			t.Errorf("%s:\n got %q\nwant %q", message, got, want)
		}
		for _, line := range s.lines() {
			if columns.Of(line) > 80 {
				t.Errorf("%d columns: %q", columns.Of(line), line)
			}
		}
	}
}
