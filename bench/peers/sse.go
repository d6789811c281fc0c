// The routes of bench/app.lua's event streams in Go's standard library: a flush per event, as a
// handler of net/http sends what is to arrive at once. Prints its port.
package main

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// The clock that the clients read, too: the runtime tells only times since one another.
var began = time.Now()
var beganAt = monotonic() - time.Since(began).Nanoseconds()

func monotonic() int64 {
	var t syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano()
}

func stream(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("content-type", "text/event-stream")
	w.Header().Set("cache-control", "no-store, no-transform")
	w.Header().Set("x-accel-buffering", "no")
	return http.NewResponseController(w)
}

func burst(w http.ResponseWriter, c *http.ResponseController) error {
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(w, "data: event number %d\n\n", i)
		if err := c.Flush(); err != nil {
			return err
		}
	}
	return nil
}

func events(w http.ResponseWriter, r *http.Request) {
	burst(w, stream(w))
}

func bursts(w http.ResponseWriter, r *http.Request) {
	c := stream(w)
	for r.Context().Err() == nil && burst(w, c) == nil {
		runtime.Gosched()
	}
}

func paced(w http.ResponseWriter, r *http.Request) {
	c := stream(w)
	for r.Context().Err() == nil && burst(w, c) == nil {
		time.Sleep(2 * time.Millisecond)
	}
}

func stamps(w http.ResponseWriter, r *http.Request) {
	c := stream(w)
	for r.Context().Err() == nil {
		fmt.Fprintf(w, "data: %d\n\n", beganAt+time.Since(began).Nanoseconds())
		if c.Flush() != nil {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func main() {
	http.HandleFunc("/events", events)
	http.HandleFunc("/bursts", bursts)
	http.HandleFunc("/paced", paced)
	http.HandleFunc("/stamps", stamps)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, nil))
}
