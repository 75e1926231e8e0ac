"""A catalog as people have one: thirty servers, a hundred and fifty tools, written for these tests.

A line a tool: ``name(parameters): description``. What a request should find is told apart only by what the
texts say; several servers do the same kind of thing.
"""

import json
import re

from mcpzip.model.entry import Entry

CATALOG = """
slack
send_message(channel, text, thread_ts): Send a message to a Slack channel or thread
list_channels(limit, cursor): List the public channels of the workspace
add_reaction(channel, timestamp, emoji): React to a message with an emoji
get_channel_history(channel, limit): Get the recent messages of a channel
set_status(text, emoji): Set your status text
get_user_profile(user_id): Get the profile of a member of the workspace

discord
create_invite(channel_id): Create an invite link to a guild
ban_member(guild_id, user_id, reason): Ban a member from a guild
list_guilds(): List the guilds the bot is in
read_messages(channel_id, limit): Read the latest messages of a text channel

todoist
create_task(content, due, project_id, priority): Create a task in your Todoist todo list
get_tasks(project_id, filter): Get the active tasks of your todo list
complete_task(task_id): Mark a task as done
delete_task(task_id): Delete a task
update_task(task_id, content, due): Change the text or the due date of a task
create_project(name): Create a project that tasks belong to

google-calendar
create_event(summary, start, end, attendees): Create an event on a calendar
list_events(calendar_id, time_min, time_max): List upcoming events and meetings
delete_event(event_id): Cancel an event and tell the attendees
find_free_time(attendees, duration): Find a time at which all attendees are free

gmail
send_email(to, subject, body, attachments): Send an email
search_emails(query, max_results): Search the mailbox
create_draft(to, subject, body): Save an email as a draft
delete_email(message_id): Move an email to the trash
list_labels(): List the labels of the mailbox
create_filter(from, label): Create a rule that sorts incoming mail

github
create_issue(owner, repo, title, body): Open a new issue in a repository
list_issues(owner, repo, state): List the issues of a repository
create_pull_request(owner, repo, head, base, title): Open a pull request to merge a branch
merge_pull_request(owner, repo, number, method): Merge a pull request
get_file_contents(owner, repo, path, ref): Get the contents of a file of a repository
search_code(q): Search code across repositories
fork_repository(owner, repo): Fork a repository to your account
list_commits(owner, repo, sha): List the commits of a branch
add_issue_comment(owner, repo, number, body): Comment on an issue
get_workflow_logs(owner, repo, run_id): Download the logs of a failed Actions run

git
git_commit(message): Record the staged changes
git_status(): Show which files of the working tree have changed
git_diff(target): Show the differences between commits or branches
git_checkout(branch): Switch to another branch
git_log(max_count): Show the history of commits
git_reset(): Unstage everything

filesystem
read_file(path, encoding): Read the complete contents of a file from disk
write_file(path, content): Write text to a file, overwriting what is there
list_directory(path): List the files and folders in a directory
move_file(source, destination): Move or rename a file
search_files(path, pattern): Find files by a pattern of their names
create_directory(path): Make a new folder
get_file_info(path): Size, owner and times of a file

postgres
query(sql): Run a read-only SQL query
list_tables(schema): List the tables of a database
describe_table(table): Columns, types and indexes of a table
explain_query(sql): Show the plan by which a query would be run
list_slow_queries(limit): Statements that took longest

redis
get(key): Get the value of a key
set(key, value, ttl): Set a key to a value, with an optional time to live
delete_keys(pattern): Delete the keys that match a pattern

kubernetes
list_pods(namespace): List pods
get_pod_logs(pod, container, tail): Fetch the log output of a container
scale_deployment(name, replicas): Change the number of replicas
delete_pod(pod, namespace): Kill a pod, which its controller starts anew
apply_manifest(yaml): Create or change resources from a manifest
rollout_restart(deployment): Restart a deployment pod by pod

deployer
rollout(app, version, environment): Roll out a release of an application to production or staging
rollback(app): Go back to the previous release
list_environments(): List the environments and what runs in them
promote_build(build_id): Promote a build from staging

packages
pip_install(names): Install Python libraries into the virtual environment
setup_environment(path): Prepare a project: create the environment and fetch what its manifest names
audit(path): Report known vulnerabilities of installed versions
outdated(path): Show which installed versions are behind

testing
run_test_suite(path, marker): Execute the unit tests of a project
coverage_report(path): Which lines no test has run
list_flaky_tests(days): Tests that pass and fail by turns

observability
error_analysis(service, since): Group exceptions and show where they were raised
profile_process(pid, seconds): Measure where a program spends its time
troubleshoot_service(service): Go through the usual causes of an outage
tail_log(service, lines): Show the last lines that a service has logged
query_metrics(expression, range): Evaluate a time series expression
create_alert(expression, threshold): Be notified when a metric crosses a limit

sentry
list_projects(organization): List projects
resolve_issue(issue_id): Mark a reported crash as fixed
get_stacktrace(event_id): The call stack of an event

identity
authenticate_user(user, password): Check a user's password and second factor
create_api_token(scope, expires): Issue a token for programs
revoke_session(session_id): Sign somebody out everywhere
reset_password(user): Send a link by which a new password can be chosen
list_roles(): Roles and what they permit

workflow
start_state_machine(arn, input): Start an execution of a state machine
describe_execution(execution_arn): How far an execution has come
stop_execution(execution_arn, cause): Abort a running execution

notion
create_page(parent_id, title, content): Create a page in a workspace
search_pages(query): Search pages and databases by title
append_blocks(page_id, blocks): Add paragraphs to the end of a page
query_database(database_id, filter): Rows of a database that meet a condition

weather
get_forecast(city, days): The weather of the coming days
get_current_conditions(city): Temperature, wind and humidity now
get_air_quality(city): How clean the air is

maps
get_directions(origin, destination, mode): The way from one place to another
geocode(address): Coordinates of an address
search_places(query, radius): Restaurants, shops and sights near a place
get_travel_time(origin, destination): How long it takes to get somewhere

stripe
create_invoice(customer, items): Bill a customer
refund_payment(charge, amount): Give money back to a customer
list_subscriptions(status): Recurring plans customers pay for
create_customer(email, name): Add a customer
get_balance(): Money that is available and pending

hubspot
create_contact(email, first_name, last_name): Add a person to the CRM
search_companies(query): Find companies in the CRM
log_call(contact_id, notes): Note down a phone call with a contact
list_deals(stage): List the deals of the pipeline

spotify
play_track(uri): Start playing a song
pause_playback(): Stop the music
create_playlist(name, public): Create a playlist
search_tracks(q): Find songs, albums and artists
set_volume(percent): Make it louder or quieter

home
turn_on_light(room, brightness): Switch on the lamps of a room
set_temperature(room, degrees): Set the thermostat
lock_door(door): Lock a door
list_devices(): Devices of the house and their state

images
resize_image(path, width, height): Change the size of a picture
convert_image(path, format): Save a picture in another format, such as webp or png
remove_background(path): Cut out what is in front
generate_image(prompt, size): Draw a picture from a description
extract_text(path): Read the words in a scanned picture (OCR)

translate
translate_text(text, target): Translate text into another language
detect_language(text): Tell which language a text is in

web
fetch_url(url, format): Fetch a web page as Markdown
search_web(query, count): Search the web
take_screenshot(url, full_page): Capture a page as an image
fill_form(url, fields): Type values into the inputs of a page

jira
create_ticket(project, summary, type): File a bug or a story
transition_ticket(key, status): Move a ticket to another column of the board
assign_ticket(key, user): Give a ticket to somebody
search_tickets(jql): Search tickets with JQL
log_work(key, hours): Record time spent

drive
upload_file(name, folder_id): Upload a document to the cloud
share_file(file_id, email, role): Give somebody access to a document
export_document(file_id, format): Download a document as PDF or Word
list_recent_files(): Documents that were opened lately

aws
list_buckets(): List S3 buckets
start_instance(instance_id): Boot a virtual machine
get_cost_report(month): What the cloud cost, by service
invoke_lambda(function, payload): Run a serverless function

analytics
run_report(metrics, dimensions, date_range): Visits, users and conversions of a site
list_properties(): Sites that are measured
get_realtime_users(): Who is on the site right now
"""

_LINE = re.compile(r"(?P<name>\w+)\((?P<parameters>[^)]*)\): (?P<description>.+)")


def entries() -> list[Entry]:
    """The catalog, in order."""
    made: list[Entry] = []
    for block in CATALOG.strip().split("\n\n"):
        server, *lines = block.splitlines()
        for line in lines:
            said = _LINE.fullmatch(line)
            assert said, line
            parameters = [name.strip() for name in said["parameters"].split(",") if name.strip()]
            schema = {"type": "object", "properties": {name: {"type": "string"} for name in parameters}}
            raw = {"name": said["name"], "description": said["description"], "inputSchema": schema}
            made.append(Entry.parse(server, json.dumps(raw).encode()))
    return made
