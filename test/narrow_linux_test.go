package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"waybill/internal/columns"
	"waybill/internal/devstack"
	"waybill/test/scenario"
)

// onTerminal runs a command of waybill on a terminal of that many columns and
// returns what is to be read there.
func onTerminal(t *testing.T, s *scenario.Site, width int, args ...string) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)})
	}
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program.Path(t), args...)
	command.Stdout = terminal
	for name, value := range s.Env() {
		command.Env = append(command.Env, name+"="+value)
	}
	read := make(chan string)
	go func() {
		var out bytes.Buffer
		_, _ = io.Copy(&out, screen) // ends with an error when nobody has the other end
		read <- out.String()
	}()
	err = command.Run()
	_ = terminal.Close()
	out := strings.ReplaceAll(<-read, "\r\n", "\n")
	if err != nil {
		t.Fatalf("waybill %v: %v\n%s", args, err, out)
	}
	return out
}

// widest is the length of the longest line.
func widest(text string) (n int) {
	for line := range strings.Lines(text) {
		n = max(n, columns.Of(strings.TrimSuffix(line, "\n")))
	}
	return n
}

// Lists and pages do not wrap on a terminal, and lists say what it has no room
// for; in a pipe they are whole.
func TestListsFitATerminal(t *testing.T) {
	t.Parallel()
	l := newLane(t, nil)
	h, err := l.CreateHook(t.Context(), devstack.Hook{
		Name: "a hook with a rather long name, as people give them", URI: l.receiver.URL("status200", "narrow"),
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := queue(t, l.Site, h, l.object, never)
	await(t, l.Site, sent.PHID, "sent", "okay")
	for what, phid := range map[string]string{"hooks": h.PHID, "requests": sent.PHID} {
		whole, _, _ := l.Command(t, nil, what, "list")
		for _, width := range []int{48, 60, 80, 120, 300} {
			list, page := onTerminal(t, l.Site, width, what, "list"), onTerminal(t, l.Site, width, what, "show", phid)
			fits := widest(whole) <= width
			if n := widest(list + page); n > width {
				t.Errorf("%s: %d columns on a terminal of %d", what, n, width)
			}
			if said := strings.Contains(list, "Not shown: "); !strings.Contains(list, phid) || said && fits || !said && width <= 80 {
				t.Errorf("%s on %d columns:\n%s\nin a pipe:\n%s", what, width, list, whole)
			}
			t.Logf("%d columns:\n%s\n%s", width, list, page)
		}
	}
}
