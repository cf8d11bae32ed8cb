package herald

import (
	"encoding/json"
	"strconv"
)

// Transport codes, by curl's numbers because Phorge shows them to people.
const (
	CurlNotHTTP     = 1  // the answer is not HTTP
	CurlUnresolved  = 6  // the name does not resolve for now
	CurlRefused     = 7  // connection refused, host unreachable
	CurlTruncated   = 18 // the body ends before its announced length
	CurlTimeout     = 28 // no complete answer in time
	CurlTLS         = 35 // TLS handshake failed
	CurlClosed      = 52 // connection closed without an answer
	CurlReset       = 56 // connection reset
	CurlCertificate = 60 // certificate not trusted or for another name
)

// Codes of configuration failures, for HookFailure.
const (
	HookDisabled = "disabled"
	HookURI      = "uri"
	HookObject   = "object"
)

// ErrorType is properties.errorType. It is set on success too.
type ErrorType string

// The error types Phorge knows.
const (
	ErrorHTTP    ErrorType = "http"
	ErrorTimeout ErrorType = "timeout"
	ErrorHook    ErrorType = "hook"
)

// Code is properties.errorCode: an HTTP status or transport code, stored as a
// JSON number, or the name of a configuration failure, stored as a string. The
// zero Code is the number 0. Codes are comparable and survive JSON.
type Code struct {
	number int
	name   string
}

// NumberCode is the code of an HTTP status or a transport fault.
func NumberCode(n int) Code { return Code{number: n} }

// NameCode is the code of a configuration failure.
func NameCode(name string) Code { return Code{name: name} }

// String is the code as a person reads it.
func (c Code) String() string {
	if c.name != "" {
		return c.name
	}
	return strconv.Itoa(c.number)
}

func (c Code) value() value {
	if c.name != "" {
		return text(c.name)
	}
	return whole(int64(c.number))
}

// MarshalJSON keeps the difference between number and string.
func (c Code) MarshalJSON() ([]byte, error) { return appendScalar(nil, c.value()), nil }

// UnmarshalJSON reverses MarshalJSON.
func (c *Code) UnmarshalJSON(raw []byte) error {
	*c = Code{}
	if len(raw) > 0 && raw[0] == '"' {
		return json.Unmarshal(raw, &c.name)
	}
	return json.Unmarshal(raw, &c.number)
}

// Answer is what one attempt observed. Several fields may be set at once: a 200
// whose body broke off has HTTPStatus 200 and Curl 18. The zero Answer, nothing
// observed, is never taken for success.
type Answer struct {
	// HTTPStatus is the final status, or a 1xx the answer stopped at; 0 if none.
	HTTPStatus int
	// Curl is a transport code, 0 if the exchange completed.
	Curl int
	// Timeout: no complete answer within the delivery timeout.
	Timeout bool
	// NoSuchHost: the name does not exist, finally (NXDOMAIN).
	NoSuchHost bool
	// Denied: every address of the host is denied by policy; nothing was sent.
	Denied bool
}

// Verdict is what is written into the row after an attempt.
type Verdict struct {
	Status    Status
	Result    Result
	ErrorType ErrorType
	Code      Code
	// Completed: lastRequestEpoch becomes the database's now, else 0.
	Completed bool
}

// Decide turns what an attempt observed into the row's next state. It is total:
// every Answer has exactly one Verdict. forever is Properties.RetryForever.
func Decide(a Answer, forever bool) Verdict {
	switch {
	case a.Denied || a.NoSuchHost:
		return HookFailure(HookURI)
	case a.Timeout || a.Curl == CurlTimeout:
		return failed(ErrorTimeout, CurlTimeout, forever)
	case a.Curl != 0:
		return failed(ErrorHTTP, a.Curl, forever)
	case a.HTTPStatus >= 200 && a.HTTPStatus <= 299:
		return Verdict{
			Status: StatusSent, Result: ResultOkay,
			ErrorType: ErrorHTTP, Code: NumberCode(a.HTTPStatus), Completed: true,
		}
	case a.HTTPStatus != 0:
		// 3xx included (differs: PHP follows, and calls what it finds there
		// the result).
		return failed(ErrorHTTP, a.HTTPStatus, forever)
	}
	return failed(ErrorHTTP, CurlNotHTTP, forever)
}

func failed(t ErrorType, code int, forever bool) Verdict {
	v := Verdict{
		Status: StatusFailed, Result: ResultFail,
		ErrorType: t, Code: NumberCode(code), Completed: true,
	}
	if forever {
		v.Status = StatusQueued
	}
	return v
}

// HookFailure is the verdict of a configuration failure: final whatever the
// retry mode, and invisible to the breaker. code is one of the Hook constants.
func HookFailure(code string) Verdict {
	return Verdict{
		Status: StatusFailed, Result: ResultNone,
		ErrorType: ErrorHook, Code: NameCode(code),
	}
}
