-- Every change at once: capacities and models are in the log, everything else is noted. Nothing is
-- copied, so that no crash can come between a change and its record.
ALTER TABLE audit RENAME TO note;
-- sqlite: DROP TRIGGER audit_unchanged
-- sqlite: DROP TRIGGER audit_kept
-- sqlite: CREATE TRIGGER note_unchanged BEFORE UPDATE ON note BEGIN SELECT RAISE(ABORT, 'the table note is append-only'); END
-- sqlite: CREATE TRIGGER note_kept BEFORE DELETE ON note BEGIN SELECT RAISE(ABORT, 'the table note is append-only'); END

-- The first version noted capacities and models, too.
CREATE VIEW audit AS
    SELECT at, key_id, action, queue, detail FROM note
    WHERE action NOT IN ('capacity', 'model')
    UNION ALL
    SELECT log.at, coalesce(log.key_id, ''), CASE log.kind WHEN 1 THEN 'capacity' ELSE 'model' END, queue.name, log.body
    FROM log JOIN queue ON queue.id = log.queue WHERE log.kind IN (1, 2);

-- A claim is its reviewer's; nothing ever asked for a token.
ALTER TABLE claim RENAME TO former_claim;
CREATE TABLE claim (
    queue INTEGER NOT NULL,
    case_id TEXT NOT NULL,
    reviewer TEXT NOT NULL,
    expires DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (queue, case_id)
);
INSERT INTO claim SELECT queue, case_id, reviewer, expires FROM former_claim;
DROP TABLE former_claim;
