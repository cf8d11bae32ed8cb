package scenario_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"waybill/test/scenario"
)

// echo is a server that answers every line with itself, and counts them.
func echo(t *testing.T) (address string, heard *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	heard = &atomic.Int32{}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for in := bufio.NewReader(conn); ; {
					line, err := in.ReadString('\n')
					if err != nil {
						return
					}
					// Counted first: whoever has the answer finds it counted.
					heard.Add(1)
					_, _ = io.WriteString(conn, line)
				}
			}()
		}
	}()
	return listener.Addr().String(), heard
}

// caller is a client of echo.
type caller struct {
	net.Conn
	lines chan string
	err   chan error
}

func dial(t *testing.T, c *scenario.Cable) *caller {
	t.Helper()
	conn, err := net.Dial("tcp", c.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	a := &caller{conn, make(chan string, 10), make(chan error, 1)}
	go func() {
		for in := bufio.NewReader(conn); ; {
			line, err := in.ReadString('\n')
			if err != nil {
				a.err <- err
				return
			}
			a.lines <- strings.TrimSpace(line)
		}
	}()
	return a
}

// refused dials a cable that takes nobody: it resets what it accepts, which the
// system reports of the dial itself when it comes early, of the first read else.
func refused(t *testing.T, c *scenario.Cable) {
	t.Helper()
	conn, err := net.Dial("tcp", c.Addr())
	if err == nil {
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(scenario.Patience))
		_, err = conn.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the cable took a connection and said %v", err)
	}
}

func (a *caller) say(t *testing.T, text string) {
	t.Helper()
	if _, err := io.WriteString(a, text); err != nil {
		t.Fatal(err)
	}
}

func (a *caller) hears(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-a.lines:
		if got != want {
			t.Errorf("heard %q, want %q", got, want)
		}
	case err := <-a.err:
		t.Fatalf("the connection ended with %v, want %q", err, want)
	case <-time.After(scenario.Patience):
		t.Fatalf("heard nothing, want %q", want)
	}
}

// awhile is long for loopback.
const awhile = 100 * time.Millisecond

func (a *caller) hearsNothing(t *testing.T) {
	t.Helper()
	select {
	case got := <-a.lines:
		t.Errorf("heard %q", got)
	case err := <-a.err:
		t.Errorf("the connection ended with %v", err)
	case <-time.After(awhile):
	}
}

// ends waits for the connection's end: by a farewell, or by a reset.
func (a *caller) ends(t *testing.T, farewell bool) {
	t.Helper()
	select {
	case got := <-a.err:
		if errors.Is(got, io.EOF) != farewell {
			t.Errorf("the connection ended with %v", got)
		}
	case <-time.After(scenario.Patience):
		t.Fatal("the connection stays")
	}
}

func TestACableCarriesBothWaysAndEndsWithItsServer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	a := dial(t, scenario.NewCable(t, listener.Addr().String()))
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	a.say(t, "there\n")
	if got, err := bufio.NewReader(server).ReadString('\n'); got != "there\n" {
		t.Errorf("the server heard %q, %v", got, err)
	}
	_, _ = io.WriteString(server, "back\n")
	a.hears(t, "back")
	server.Close()
	a.ends(t, true)
}

// What is said into a frozen cable waits, on new connections too, and nobody
// learns that the other side hung up.
func TestAFrozenCableLosesNothingAndTellsNothing(t *testing.T) {
	t.Parallel()
	address, heard := echo(t)
	c := scenario.NewCable(t, address)
	a := dial(t, c)
	a.say(t, "before\n")
	a.hears(t, "before")
	c.Freeze()
	c.Freeze()
	a.say(t, "meanwhile\n")
	late := dial(t, c)
	late.say(t, "late\n")
	a.hearsNothing(t)
	late.hearsNothing(t)
	if n := heard.Load(); n != 1 {
		t.Errorf("the server heard %d lines", n)
	}
	c.Thaw()
	c.Thaw()
	a.hears(t, "meanwhile")
	late.hears(t, "late")
}

func TestACutResetsAndARefusingCableTakesNobody(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	c := scenario.NewCable(t, address)
	a := dial(t, c)
	a.say(t, "x\n")
	a.hears(t, "x")
	c.Gone()
	a.ends(t, false)
	refused(t, c)
	c.Accept()
	b := dial(t, c)
	b.say(t, "again\n")
	b.hears(t, "again")
}

func TestACutEndsWhatIsFrozen(t *testing.T) {
	t.Parallel()
	address, heard := echo(t)
	c := scenario.NewCable(t, address)
	a := dial(t, c)
	c.Freeze()
	a.say(t, "lost\n")
	a.hearsNothing(t)
	c.Cut()
	a.ends(t, false)
	c.Thaw()
	scenario.Never(t, awhile, "a line that was cut off arrives", func() bool { return heard.Load() > 0 })
}

// A held question has had no effect, a held answer is one that has; each can be
// let go late or be lost. Other connections go on.
func TestAHeldMessageIsBeforeOrAfterItsEffect(t *testing.T) {
	t.Parallel()
	for what, effects := range map[scenario.Part]int32{scenario.Question: 0, scenario.Answer: 1} {
		for _, drop := range []bool{false, true} {
			address, heard := echo(t)
			c := scenario.NewCable(t, address)
			a, other := dial(t, c), dial(t, c)
			held := c.Hold(what, "SET status")
			// In two pieces: where reads end must not matter.
			a.say(t, "UPDATE x SET st")
			a.hearsNothing(t)
			a.say(t, "atus = 1\n")
			held.Await(t)
			a.hearsNothing(t)
			if n := heard.Load(); n != effects {
				t.Errorf("%s: %d effects, want %d", what, n, effects)
			}
			other.say(t, "SET status\n")
			other.hears(t, "SET status")
			if drop {
				held.Drop()
				a.ends(t, false)
				continue
			}
			held.Release()
			a.hears(t, "UPDATE x SET status = 1")
		}
	}
}

// What went through before the hold does not count.
func TestAHoldLooksForwardOnly(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	c := scenario.NewCable(t, address)
	a := dial(t, c)
	a.say(t, "one\n")
	a.hears(t, "one")
	held := c.Hold(scenario.Question, "one")
	a.say(t, "two\n")
	a.hears(t, "two")
	if held.Reached() {
		t.Error("held by what was said before")
	}
}

// A hold for nothing in particular takes whatever is said next.
func TestAHoldForNothingTakesTheNextWord(t *testing.T) {
	t.Parallel()
	address, _ := echo(t)
	c := scenario.NewCable(t, address)
	a := dial(t, c)
	long := strings.Repeat("x", 400)
	a.say(t, long+"\n")
	a.hears(t, long)
	held := c.Hold(scenario.Question, "")
	a.say(t, "y\n")
	held.Await(t)
	a.hearsNothing(t)
	held.Release()
	a.hears(t, "y")
}
