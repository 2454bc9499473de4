// Package e2e tests the built ./pizza as people and programs use it: real mail
// programs over sockets, real kill -9, and the figures of `make bench`. The tests
// carry build tags: e2e, bench, soak.
package e2e
