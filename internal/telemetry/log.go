// Package telemetry makes the process observable: one zap logger for Waybill
// and the Temporal SDK, and one OpenTelemetry meter provider that Prometheus
// scrapes.
//
// It refuses labels per hook or per row: their number belongs to Phorge's users
// and would grow without bound; logs and workflows name hooks, metrics count
// them. It keeps no global state: nothing is registered with zap's, otel's or
// Prometheus' package-level defaults. cmd/waybill, worker, starter and api may
// import it.
package telemetry

import (
	"io"
	"strconv"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LogOptions says what NewLogger builds. The zero value, with an Output,
// writes JSON from info on.
type LogOptions struct {
	Level    string // debug, info, warn or error; empty: info
	Format   string // json or console; empty: console when Terminal
	Terminal bool   // whether Output is a terminal
	Output   io.Writer
	Now      func() time.Time // stamps the lines; nil leaves that to zap
}

// timeLayout is RFC 3339 with milliseconds: fine enough to order the lines of
// a delivery, and fixed in width.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// NewLogger builds the process' logger and the switch that changes its level
// while it runs. The error names the level that is not one.
func NewLogger(options LogOptions) (*zap.Logger, zap.AtomicLevel, error) {
	level := zap.NewAtomicLevel()
	if options.Level != "" {
		parsed, err := zapcore.ParseLevel(options.Level)
		if err != nil {
			return nil, level, errLevel(options.Level)
		}
		level.SetLevel(parsed)
	}
	core := zapcore.NewCore(encoder(options), zapcore.Lock(zapcore.AddSync(options.Output)), level)
	settings := []zap.Option{zap.AddStacktrace(zapcore.DPanicLevel)}
	if options.Now != nil {
		settings = append(settings, zap.WithClock(clock(options.Now)))
	}
	return zap.New(core, settings...), level, nil
}

// errLevel is the error about a word that is no level.
type errLevel string

func (e errLevel) Error() string {
	return "log level " + strconv.Quote(string(e)) + " is none of debug, info, warn and error"
}

// encoder picks the form of a line. Keys are the snake_case ones that every
// Waybill line uses; there is no caller, because a message is unique enough
// and a file's line number changes with every release.
func encoder(options LogOptions) zapcore.Encoder {
	keys := zapcore.EncoderConfig{
		TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message", StacktraceKey: "stack",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeTime:     zapcore.TimeEncoderOfLayout(timeLayout),
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.SecondsDurationEncoder,
		EncodeName:     zapcore.FullNameEncoder,
	}
	if options.Format == "console" || (options.Format == "" && options.Terminal) {
		return zapcore.NewConsoleEncoder(keys)
	}
	return zapcore.NewJSONEncoder(keys)
}

// clock lets a function of the caller stamp zap's lines.
type clock func() time.Time

// Now implements zapcore.Clock.
func (c clock) Now() time.Time { return c() }

// NewTicker implements zapcore.Clock. Only zap's buffered writer asks for it,
// which is not used here.
func (c clock) NewTicker(every time.Duration) *time.Ticker { return time.NewTicker(every) }
