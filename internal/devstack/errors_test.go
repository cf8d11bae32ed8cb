package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestStartErrorReadsTheCauseFromTheLog(t *testing.T) {
	tests := []struct {
		name, log string
		want      error
	}{
		{"nothing known", "[ERROR] Aborting", ErrExited},
		{"full disk, MariaDB", "[ERROR] mariadbd: Error writing file (Errcode: 28 \"No space left on device\")", ErrDiskFull},
		{"full disk, InnoDB", "[ERROR] InnoDB: preallocating 12582912 bytes for file ./ibdata1 failed with error 28: No space left on device", ErrDiskFull},
		{"full disk, redo log", "[ERROR] InnoDB: preallocating 100663296 bytes for file ./ib_logfile101 failed with error 28", ErrDiskFull},
		{"port, MariaDB", "[ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use", ErrPortInUse},
		{"port, Temporal", "error: can't set frontend port 7233: listen tcp 127.0.0.1:7233: bind: address already in use", ErrPortInUse},
		{"a survivor", "[ERROR] InnoDB: Unable to lock ./ibdata1 error: 11", ErrInUse},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte("first line\n"+tt.log+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := startError("MariaDB", ErrExited, path)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			for _, part := range []string{"MariaDB", path, tt.log} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %v", part, err)
				}
			}
		})
	}
}

func TestStartErrorQuotesTheEndOfALongLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var log strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&log, "line %d.\n", i)
	}
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := startError("Temporal", ErrExited, path).Error()
	if !strings.Contains(text, "line 1999.") || strings.Contains(text, "line 1980.") {
		t.Errorf("quoted: %s", text)
	}
}

func TestStartErrorWithoutALog(t *testing.T) {
	err := startError("Temporal", ErrExited, filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, ErrExited) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

func TestDiskErrorMarksAFullDiskOnly(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	if err := diskError(full); !errors.Is(err, ErrDiskFull) {
		t.Errorf("got %v, want ErrDiskFull", err)
	}
	other := &os.PathError{Op: "write", Path: "x", Err: syscall.EACCES}
	if err := diskError(other); errors.Is(err, ErrDiskFull) || !errors.Is(err, syscall.EACCES) {
		t.Errorf("got %v, want it unchanged", err)
	}
	if diskError(nil) != nil {
		t.Error("made an error of none")
	}
}

func TestInstallErrorKnowsAFullDisk(t *testing.T) {
	out := "mysqld: Error writing file './mysql/db.MAD' (Errcode: 28 \"No space left on device\")"
	if err := installError("MariaDB", errors.New("exit status 1"), out); !errors.Is(err, ErrDiskFull) {
		t.Errorf("got %v, want ErrDiskFull", err)
	}
	if err := installError("MariaDB", errors.New("exit status 1"), "else"); errors.Is(err, ErrDiskFull) {
		t.Errorf("got %v, which is no full disk", err)
	}
}

// What an installation's script says last is advice; the error comes before.
func TestAnInstallationsErrorIsQuoted(t *testing.T) {
	out := "ERROR: 1017  Can't find file\n" + strings.Repeat("advice\n", 50)
	err := installError("MariaDB", errors.New("exit status 1"), out)
	if !strings.Contains(err.Error(), "ERROR: 1017") || strings.Contains(err.Error(), "advice") {
		t.Errorf("got %v", err)
	}
}

// MySQL is not installed where these tests usually run; what it is told is
// compared with its manual instead.
func TestMySQLIsStartedItsOwnWay(t *testing.T) {
	p := mariadbProgram{path: "/usr/sbin/mysqld"}
	cmd, err := p.installCommand(t.Context(), "/of/data")
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Join(cmd.Args, " ")
	for _, want := range []string{"--no-defaults --initialize-insecure", "--datadir=/of/data", "--tmpdir=/of/tmp", "--secure-file-priv=NULL"} {
		if !strings.Contains(args, want) {
			t.Errorf("%s is not in %s", want, args)
		}
	}
	for _, arg := range p.extraArguments(true) {
		if strings.Contains(arg, "no-sync") {
			t.Errorf("MySQL is given MariaDB's %s", arg)
		}
	}
}
