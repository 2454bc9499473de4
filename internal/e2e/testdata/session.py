"""What Python's imaplib can say to a server, each answer checked.

usage: session.py IMAP_PORT PASSWORD
"""
import imaplib
import re
import sys

port, password = int(sys.argv[1]), sys.argv[2]


def ok(answer):
    kind, data = answer
    assert kind == "OK", answer
    return data


def refused(call, *args):
    try:
        kind, data = call(*args)
    except imaplib.IMAP4.error as error:
        return str(error)
    assert kind == "NO", (kind, data)
    return data[0].decode()


def letter(n):
    return (f"From: Ann <ann@example.org>\r\nTo: me@localhost\r\nSubject: letter {n}\r\n"
            f"Date: Thu, {n} Jan 2026 10:00:00 +0000\r\nMessage-ID: <{n}@example.org>\r\n\r\nBody {n}\r\n").encode()


box = imaplib.IMAP4("127.0.0.1", port)
assert "AUTH=PLAIN" in box.capabilities, box.capabilities
assert "AUTHENTICATIONFAILED" in refused(box.login, "me", "wrong")
ok(box.authenticate("PLAIN", lambda _: f"\0me\0{password}".encode()))
ok(box.capability())
assert b'"/"' in ok(box.namespace())[0]
ok(box.noop())

ok(box.create('"Old letters"'))
ok(box.subscribe('"Old letters"'))
assert any(b"Old letters" in line for line in ok(box.lsub()))
ok(box.rename('"Old letters"', "Letters"))
assert not any(b"Old letters" in line for line in ok(box.list()) if line)
assert "NONEXISTENT" in refused(box.status, "Nowhere", "(MESSAGES)")
assert "TRYCREATE" in refused(box.append, "Nowhere", None, None, letter(1))

for n in range(1, 6):
    ok(box.append("Letters", r"(\Seen)" if n % 2 else None, '"01-Feb-2026 10:00:00 +0100"', letter(n)))
assert ok(box.status("Letters", "(MESSAGES UNSEEN UIDNEXT)"))[0].endswith(b"(MESSAGES 5 UNSEEN 2 UIDNEXT 6)")
assert ok(box.select("Letters")) == [b"5"]
assert box.response("PERMANENTFLAGS")[1][0] and box.response("UIDVALIDITY")[1][0]

assert ok(box.search(None, "UNSEEN")) == [b"2 4"]
assert ok(box.search(None, "SUBJECT", '"letter 3"')) == [b"3"]
box.literal = "bödy".encode()
assert ok(box.search("UTF-8", "TEXT")) == [b""]
assert ok(box.uid("SEARCH", "BODY", "body")) == [b"1 2 3 4 5"]
if "SORT" in box.capabilities:
    assert ok(box.sort("(REVERSE DATE)", "UTF-8", "ALL")) == [b"5 4 3 2 1"]
if "THREAD=REFERENCES" in box.capabilities:
    assert ok(box.thread("REFERENCES", "UTF-8", "1:2")) == [b"(1)(2)"]

whole = ok(box.fetch("3", "(UID INTERNALDATE RFC822.SIZE BODY.PEEK[])"))[0]
assert whole[1] == letter(3) and b"UID 3" in whole[0] and b" 1-Feb-2026 10:00:00 +0100" in whole[0], whole
part = ok(box.fetch("3", "BODY.PEEK[TEXT]<0.4>"))[0]
assert part[1] == b"Body", part
assert len(ok(box.fetch("1:*", "ALL"))) == 5

answer = ok(box.store("2,4", "+FLAGS", r"(\Flagged $Work)"))
assert len(answer) == 2 and all(b"$Work" in line and rb"\Flagged" in line for line in answer), answer
ok(box.store("1", "FLAGS.SILENT", r"(\Deleted)"))
ok(box.uid("COPY", "2", "Archive"))
assert re.fullmatch(rb"\d+ 2 1", box.response("COPYUID")[1][0]), "COPYUID"
ok(box.uid("MOVE", "4", "Archive"))
assert ok(box.expunge())[-1] == b"1"  # after what MOVE expunged
assert ok(box.uid("SEARCH", "ALL")) == [b"2 3 5"]
ok(box.check())
ok(box.close())
assert ok(box.select("Archive", readonly=True)) == [b"2"]
assert ok(box.search(None, "KEYWORD", "$Work")) == [b"1 2"]
try:
    kind, data = box.store("1", "+FLAGS", r"\Seen")
    assert kind == "NO", data
except imaplib.IMAP4.readonly:
    pass
ok(box.unselect())
ok(box.enable("UTF8=ACCEPT"))
ok(box.create('"Grüße"'))
assert any("Grüße".encode() in line for line in ok(box.list()))
ok(box.delete('"Grüße"'))
ok(box.unsubscribe("Letters"))
ok(box.delete("Letters"))
assert box.logout()[0] == "BYE"
print("all of it")
