-- What a decision service keeps. Written for SQLite and PostgreSQL alike; where they differ, a line
-- begins with the name of the one it is for.
CREATE TABLE total (
    name TEXT PRIMARY KEY CHECK (name = 'all'),
    capacity BIGINT NOT NULL CHECK (capacity >= 0)
);

CREATE TABLE queue (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    settings TEXT NOT NULL,
    total TEXT REFERENCES total (name),
    capacity BIGINT NOT NULL CHECK (capacity >= 0),
    of_work INTEGER NOT NULL DEFAULT 0, -- 1 if the capacity is one of work, in millionths
    last_seq BIGINT NOT NULL DEFAULT 0,
    high_water DOUBLE PRECISION NOT NULL,
    period BIGINT,
    used BIGINT NOT NULL DEFAULT 0,
    seen BIGINT NOT NULL DEFAULT 0,
    spent BIGINT NOT NULL DEFAULT 0,
    head BLOB NOT NULL -- the hash of the last entry
);

-- Model files as bytes: every machine and every audit finds them here.
CREATE TABLE model (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    scorer TEXT NOT NULL,
    added DOUBLE PRECISION NOT NULL,
    calibration BLOB NOT NULL,
    file BLOB NOT NULL,
    UNIQUE (sha256, scorer)
);

-- When each worker was last seen, which models it has loaded, and which one it is to load before a
-- queue switches to it.
CREATE TABLE worker (
    name TEXT PRIMARY KEY,
    seen DOUBLE PRECISION NOT NULL,
    loaded TEXT NOT NULL,
    wanted INTEGER
);

CREATE TABLE build (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

-- Everything that ever happened to a queue, without gaps: decisions (kind 0), changes of the
-- capacity (1), of the model (2), the state with which a version of the program began (3), and cases
-- that were observed only (4); a clock that was set back (5) is the only thing after which moments
-- are earlier; another shadow model (6), and entities on the allow-list (7). Of work, `spent` is the sum of `work` in the period so far.
CREATE TABLE log (
    queue INTEGER NOT NULL, -- no foreign key: it would be checked for every single entry
    seq BIGINT NOT NULL CHECK (seq > 0),
    kind SMALLINT NOT NULL,
    build INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    period BIGINT NOT NULL,
    case_id TEXT,
    digest BLOB,
    score DOUBLE PRECISION,
    threshold DOUBLE PRECISION,
    code SMALLINT,
    slot BIGINT CHECK (slot > 0),
    model INTEGER,
    key_id TEXT,
    body TEXT,
    effort DOUBLE PRECISION,
    work BIGINT,
    spent BIGINT,
    inclusion DOUBLE PRECISION,
    total_slot BIGINT CHECK (total_slot > 0),
    shadow DOUBLE PRECISION, -- the score by a model that decides nothing
    entity TEXT, -- whose event it is
    joined BIGINT, -- the number of the flagged entry whose case it joined; such an entry has no slot. Of
    -- a slot of kind 8, the entry with which the case began to wait
    seal BLOB, -- a salt; what is left of the private columns when a case was erased
    hash BLOB NOT NULL, -- of this entry and of the one before it
    PRIMARY KEY (queue, seq)
);

-- The promise, kept by the database itself: one decision for each case, one flag for each slot. A
-- case that waits gets its slot in another entry (kind 8), once.
CREATE UNIQUE INDEX log_case ON log (queue, case_id, kind) WHERE case_id IS NOT NULL;
CREATE UNIQUE INDEX log_slot ON log (queue, period, slot) WHERE slot IS NOT NULL;
CREATE UNIQUE INDEX log_total ON log (period, total_slot) WHERE total_slot IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_entity ON log (queue, entity, seq) WHERE entity IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_entity_case ON log (queue, entity, kind, at) WHERE entity IS NOT NULL AND (slot > 0 OR kind = 7 OR code = 10);
CREATE INDEX IF NOT EXISTS log_joined ON log (queue, joined, score) WHERE joined IS NOT NULL;
CREATE INDEX IF NOT EXISTS log_event ON log (queue, kind, seq) WHERE kind > 0;

-- No flag beyond the capacity in force, whatever a program asks for. Of work, each flag continues the
-- sum of the slot before it; slots are unique, so that no work can be left out of the sum.
-- sqlite: CREATE TRIGGER log_capacity BEFORE INSERT ON log WHEN NEW.slot IS NOT NULL AND CASE WHEN (SELECT of_work FROM queue WHERE id = NEW.queue) = 0 THEN NEW.slot > (SELECT capacity FROM queue WHERE id = NEW.queue) ELSE coalesce(NEW.work IS NULL OR NEW.work < 0 OR NEW.spent IS NULL OR NEW.spent <> NEW.work + CASE WHEN NEW.slot = 1 THEN 0 ELSE (SELECT spent FROM log WHERE queue = NEW.queue AND period = NEW.period AND slot = NEW.slot - 1) END OR NEW.spent > (SELECT capacity FROM queue WHERE id = NEW.queue), TRUE) END BEGIN SELECT RAISE(ABORT, 'capacity used up'); END;
-- sqlite: CREATE TRIGGER log_total_capacity BEFORE INSERT ON log WHEN NEW.slot IS NOT NULL AND (NEW.total_slot IS NULL OR NEW.total_slot > (SELECT capacity FROM total)) AND (SELECT total FROM queue WHERE id = NEW.queue) IS NOT NULL BEGIN SELECT RAISE(ABORT, 'capacity used up'); END;
-- sqlite: CREATE TRIGGER log_unchanged BEFORE UPDATE OF queue, seq, kind, build, at, period, score, threshold, code, slot, model, key_id, effort, work, spent, inclusion, total_slot, shadow, joined, hash ON log BEGIN SELECT RAISE(ABORT, 'the table log is append-only'); END;
-- sqlite: CREATE TRIGGER log_erased BEFORE UPDATE ON log WHEN NEW.entity IS NOT NULL OR NEW.digest IS NOT NULL OR NEW.body IS NOT NULL OR length(NEW.seal) IS NOT 32 BEGIN SELECT RAISE(ABORT, 'the table log is append-only'); END;
-- sqlite: CREATE TRIGGER log_kept BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the table log is append-only'); END;
-- postgresql: CREATE FUNCTION check_slot() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF (CASE WHEN (SELECT of_work FROM queue WHERE id = NEW.queue) = 0 THEN NEW.slot > (SELECT capacity FROM queue WHERE id = NEW.queue) ELSE coalesce(NEW.work IS NULL OR NEW.work < 0 OR NEW.spent IS NULL OR NEW.spent <> NEW.work + CASE WHEN NEW.slot = 1 THEN 0 ELSE (SELECT spent FROM log WHERE queue = NEW.queue AND period = NEW.period AND slot = NEW.slot - 1) END OR NEW.spent > (SELECT capacity FROM queue WHERE id = NEW.queue), TRUE) END) OR ((NEW.total_slot IS NULL OR NEW.total_slot > (SELECT capacity FROM total)) AND (SELECT total FROM queue WHERE id = NEW.queue) IS NOT NULL) THEN RAISE EXCEPTION ''capacity used up'' USING ERRCODE = ''check_violation''; END IF; RETURN NEW; END';
-- postgresql: CREATE TRIGGER log_capacity BEFORE INSERT ON log FOR EACH ROW WHEN (NEW.slot IS NOT NULL) EXECUTE FUNCTION check_slot();
-- postgresql: CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''the table % is append-only'', TG_TABLE_NAME; END';
-- postgresql: CREATE TRIGGER log_unchanged BEFORE UPDATE OF queue, seq, kind, build, at, period, score, threshold, code, slot, model, key_id, effort, work, spent, inclusion, total_slot, shadow, joined, hash OR DELETE ON log FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- postgresql: CREATE TRIGGER log_erased BEFORE UPDATE ON log FOR EACH ROW WHEN (NEW.entity IS NOT NULL OR NEW.digest IS NOT NULL OR NEW.body IS NOT NULL OR length(NEW.seal) IS DISTINCT FROM 32) EXECUTE FUNCTION refuse_change();

-- What can be computed from the log, kept for speed: the numbers of periods that have ended (those
-- of the present one are in the queue's row), and the latest state of a queue's controller.
CREATE TABLE ended (
    queue INTEGER NOT NULL,
    period BIGINT NOT NULL,
    capacity BIGINT NOT NULL,
    used BIGINT NOT NULL,
    seen BIGINT NOT NULL,
    spent BIGINT NOT NULL,
    PRIMARY KEY (queue, period)
);

CREATE TABLE snapshot (
    queue INTEGER PRIMARY KEY,
    build INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    state TEXT NOT NULL
);

-- How far each source of messages has been answered by a stream.
CREATE TABLE source (
    source TEXT PRIMARY KEY,
    answered BIGINT NOT NULL
);

-- The work of reviewers: who they are, and who holds which case, by its entry in the log. A claim
-- without an end lasts until the case is released; whoever closed a case keeps it.
CREATE TABLE reviewer (
    name TEXT PRIMARY KEY,
    minutes DOUBLE PRECISION NOT NULL CHECK (minutes >= 0),
    segments TEXT NOT NULL, -- as JSON, like the queues; null means all
    queues TEXT NOT NULL,
    absent_until DOUBLE PRECISION
);

CREATE TABLE claim (
    queue INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    reviewer TEXT NOT NULL,
    expires DOUBLE PRECISION,
    assigned INTEGER NOT NULL,
    PRIMARY KEY (queue, seq)
);

CREATE TABLE declined (
    queue INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    reviewer TEXT NOT NULL,
    PRIMARY KEY (queue, seq, reviewer)
);

CREATE TABLE outcome (
    queue INTEGER NOT NULL,
    number BIGINT NOT NULL,
    case_id TEXT NOT NULL,
    rare BOOLEAN, -- NULL if the reviewer could not tell
    reviewer TEXT NOT NULL,
    note TEXT,
    at DOUBLE PRECISION NOT NULL,
    idempotency TEXT,
    seal BLOB NOT NULL, -- as in the log
    PRIMARY KEY (queue, number),
    UNIQUE (queue, idempotency)
);
CREATE INDEX IF NOT EXISTS outcome_case ON outcome (queue, case_id, number);
-- sqlite: CREATE TRIGGER outcome_unchanged BEFORE UPDATE OF queue, number, rare, reviewer, at ON outcome BEGIN SELECT RAISE(ABORT, 'the table outcome is append-only'); END;
-- sqlite: CREATE TRIGGER outcome_erased BEFORE UPDATE ON outcome WHEN NEW.note IS NOT NULL OR NEW.idempotency IS NOT NULL OR length(NEW.seal) IS NOT 32 BEGIN SELECT RAISE(ABORT, 'the table outcome is append-only'); END;
-- sqlite: CREATE TRIGGER outcome_kept BEFORE DELETE ON outcome BEGIN SELECT RAISE(ABORT, 'the table outcome is append-only'); END;
-- postgresql: CREATE TRIGGER outcome_unchanged BEFORE UPDATE OF queue, number, rare, reviewer, at OR DELETE ON outcome FOR EACH ROW EXECUTE FUNCTION refuse_change();
-- postgresql: CREATE TRIGGER outcome_erased BEFORE UPDATE ON outcome FOR EACH ROW WHEN (NEW.note IS NOT NULL OR NEW.idempotency IS NOT NULL OR length(NEW.seal) IS DISTINCT FROM 32) EXECUTE FUNCTION refuse_change();

-- Who may, and who did. Capacities and models are in the log; everything else is noted. The view
-- shows both without copies, so that no crash can come between a change and its record.
CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL,
    role TEXT NOT NULL,
    queues TEXT,
    made DOUBLE PRECISION NOT NULL,
    ends DOUBLE PRECISION,
    revoked DOUBLE PRECISION,
    person TEXT
);

CREATE TABLE note (
    number BIGINT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    key_id TEXT NOT NULL,
    action TEXT NOT NULL,
    queue TEXT,
    detail TEXT NOT NULL,
    hash BLOB NOT NULL -- of this note and of the one before it
);
-- sqlite: CREATE TRIGGER note_unchanged BEFORE UPDATE ON note BEGIN SELECT RAISE(ABORT, 'the table note is append-only'); END;
-- sqlite: CREATE TRIGGER note_kept BEFORE DELETE ON note BEGIN SELECT RAISE(ABORT, 'the table note is append-only'); END;
-- postgresql: CREATE TRIGGER note_unchanged BEFORE UPDATE OR DELETE ON note FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE INDEX IF NOT EXISTS note_action ON note (queue, action, at);

CREATE TABLE alarm (
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    message TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (queue, kind)
);

-- What the webhook has to send, in order by case (its entry in the log; 0 for alarms). Without a
-- moment when it is due, it was given up. Logs, and notes as queue 0, have been read up to a place.
CREATE TABLE hook_event (
    number BIGINT PRIMARY KEY,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    queue INTEGER NOT NULL,
    seq BIGINT NOT NULL,
    body TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    due DOUBLE PRECISION,
    tries INTEGER NOT NULL DEFAULT 0,
    error TEXT
);
CREATE INDEX IF NOT EXISTS hook_event_case ON hook_event (queue, seq, number);

CREATE TABLE hook_place (
    queue INTEGER PRIMARY KEY,
    seq BIGINT NOT NULL
);

CREATE VIEW audit AS
    SELECT at, key_id, action, queue, detail FROM note
    UNION ALL
    SELECT log.at, coalesce(log.key_id, ''), CASE log.kind WHEN 1 THEN 'capacity' WHEN 2 THEN 'model' WHEN 6 THEN 'shadow' WHEN 7 THEN 'allow' ELSE 'clock' END, queue.name, log.body
    FROM log JOIN queue ON queue.id = log.queue WHERE log.kind IN (1, 2, 5, 6, 7);
