package telemetry

import (
	"fmt"
	"strings"
	"unicode"

	"go.temporal.io/sdk/log"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// TemporalLogger lets the Temporal SDK log through the process' logger, under
// the name "temporal" and with Waybill's snake_case keys.
//
// The SDK's info lines tell of workers started and defaults chosen, once per
// worker and process; they become debug lines. Its line per failed activity
// becomes one as well, because Waybill writes its own line per attempt, and
// what a retried write-back ran into is in the workflow. Warnings and the other
// errors stay what they are: a lost connection or a panic is for an operator.
func TemporalLogger(logger *zap.Logger) log.Logger {
	return sdkLogger{out: logger.Named("temporal")}
}

// sdkLogger implements log.Logger and log.WithLogger.
type sdkLogger struct{ out *zap.Logger }

// activityFailed is the SDK's message (v1.51) for an activity that returned an
// error and will be tried again or reported to its workflow.
const activityFailed = "Activity error."

// Debug implements log.Logger.
func (l sdkLogger) Debug(message string, pairs ...any) { l.write(zapcore.DebugLevel, message, pairs) }

// Info implements log.Logger.
func (l sdkLogger) Info(message string, pairs ...any) { l.write(zapcore.DebugLevel, message, pairs) }

// Warn implements log.Logger.
func (l sdkLogger) Warn(message string, pairs ...any) { l.write(zapcore.WarnLevel, message, pairs) }

// Error implements log.Logger.
func (l sdkLogger) Error(message string, pairs ...any) {
	if message == activityFailed {
		l.write(zapcore.DebugLevel, message, pairs)
		return
	}
	l.write(zapcore.ErrorLevel, message, pairs)
}

// With implements log.WithLogger.
func (l sdkLogger) With(pairs ...any) log.Logger {
	return sdkLogger{out: l.out.With(fields(pairs)...)}
}

// write checks the level first: turning pairs into fields costs, and the SDK
// logs a lot at debug.
func (l sdkLogger) write(level zapcore.Level, message string, pairs []any) {
	if entry := l.out.Check(level, message); entry != nil {
		entry.Write(fields(pairs)...)
	}
}

// fields turns the SDK's alternating keys and values into zap's. A key without
// a value, or one that is no string, is kept rather than dropped.
func fields(pairs []any) []zap.Field {
	list := make([]zap.Field, 0, (len(pairs)+1)/2)
	for i := 0; i < len(pairs); i += 2 {
		key := snakeCase(fmt.Sprint(pairs[i]))
		if i+1 == len(pairs) {
			list = append(list, zap.String("extra", key))
			break
		}
		list = append(list, zap.Any(key, pairs[i+1]))
	}
	return list
}

// snakeCase turns the SDK's "WorkflowID" and "TaskQueue" into "workflow_id" and
// "task_queue".
func snakeCase(key string) string {
	var b strings.Builder
	runes := []rune(key)
	for i, r := range runes {
		startsWord := unicode.IsUpper(r) && i > 0 &&
			(!unicode.IsUpper(runes[i-1]) || (i+1 < len(runes) && unicode.IsLower(runes[i+1])))
		if startsWord && runes[i-1] != '_' {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
