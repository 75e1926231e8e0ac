"""Names of products whose parts are words of their own (pure data).

The rule: such a name is one word, however it is written. "GitHub", "GITHUB" and "git-hub" would otherwise be
"git hub", "github" and "git hub"; "MySQL" would be "sql", because "my" is a stop word. A name belongs here if
it is usually written with a capital letter inside, or in two words.
"""

from collections.abc import Container, Sequence

_NAMES = """
ActiveCampaign AdMob AdSense AdWords AirBnB AirTable AirTag AliExpress AlloyDB AppFlow AppFolio AppSheet
AppSync AppVeyor ArangoDB ArcGIS ArgoCD ArXiv AutoCAD BambooHR BaseCamp BeReal BigCommerce BigQuery BigTable
BitBucket BlueSky BookStack BrightData BrowserBase BrowserStack CalDAV CallRail CardDAV CareerBuilder
CircleCI ClassDojo ClickHouse ClickUp CloudFlare CloudFormation CloudFront CloudTrail CloudWatch CockroachDB
CodeBuild CodeCommit CodePen CodePipeline CodeSandbox CoinBase CoinGecko CoinMarketCap CommonMark
ConnectWise ConvertKit CosmosDB CouchBase CouchDB CrowdStrike CrunchBase DailyMotion DataBricks DataDog
DataRobot DataStax DeepGram DeepL DeepMind DeepSeek DeviantArt DigitalOcean DocuSign DocumentDB DokuWiki
DoorDash DropBox DuckDB DuckDuckGo DynamoDB ElastiCache ElasticSearch ElevenLabs EspoCRM EventBridge
EventBrite EverNote FaceBook FaceTime FactSet FedEx FileMaker FireBase FireCrawl FireFox FireStore FlexPort
FogBugz FourSquare FreeCAD FreshBooks FreshDesk FreshSales FreshService FullStory FusionAuth GeoJSON
GeoNames GetResponse GitBook GitHub GitLab GitKraken GitOps GoCardless GoDaddy GoToMeeting GoToWebinar
GraphQL GreenHouse GrubHub HackMD HackerNews HackerOne HackerRank HarperDB HashiCorp HelloSign HelpScout
HomeAssistant HootSuite HubSpot HuggingFace iCloud InDesign InfluxDB InstaCart InVision IronPython
JavaScript JetBrains JFrog JSFiddle JumpCloud JupyterHub JupyterLab KeyCloak KnowledgeOwl KuCoin LanceDB
LangChain LangFuse LangGraph LangSmith LaunchDarkly LeetCode LibreOffice LinkedIn LiveChat LiveKit
LlamaIndex LogRocket LoopBack MailChimp MailGun MariaDB MasterCard MatLab MatterMost MediaWiki MeiliSearch
MindMeister MixPanel MongoDB MotherDuck MySQL NameCheap NetBox NetSuite NewRelic NextCloud NextDNS NordVPN
NuGet OneDrive OneLogin OneNote OnlyOffice OpenAI OpenAPI OpenLDAP OpenProject OpenRouter OpenSearch
OpenShift OpenStack OpenStreetMap OpenTable OpenTelemetry OpenWeather OpenWeatherMap OptinMonster OrientDB
OutSystems OverLeaf PageSpeed PagerDuty PandaDoc PayPal PeopleSoft PhonePe PhotoShop PhpMyAdmin PineCone
PipeDrive PlanetScale PlayStation PlayWright PocketBase PolyMarket PostGIS PostgreSQL PostHog PostMark
PowerApps PowerBI PowerPoint PowerShell ProductHunt ProtonMail PubMed PyCharm PyPI PyTorch QuestDB QuickBase
QuickBooks QuickSight RabbitMQ RavenDB RayCast ReadMe RedHat RedShift RethinkDB RevenueCat RingCentral
RocketChat RunPod SageMaker SalesForce SalesLoft SAPUI5 SavvyCal SciPy ScyllaDB SendGrid SendInBlue
ServiceNow ShareFile SharePoint ShipStation SignalR SimilarWeb SingleStore SlideShare SmartSheet SnapChat
SnowFlake SolarWinds SonarCloud SonarQube SoundCloud SourceForge SourceGraph SpaceX SpringBoot SQLAlchemy
SQLite SquareSpace StackBlitz StackExchange StackOverflow StatusPage StreamYard SugarCRM SupaBase SurrealDB
SurveyMonkey TeamCity TeamViewer TeamWork TensorFlow TestFlight TestRail TextMagic ThingsBoard TicketMaster
TidyCal TikTok TimescaleDB TomTom TorchServe TradingView TripAdvisor TrustPilot TypeForm TypeScript
TypeSense UiPath UnionPay UpWork UserVoice VictorOps VictoriaMetrics VirusTotal VMware VSCode WakaTime
WaveApps WeChat WebDAV WebEx WebFlow WebRTC WebStorm WhatsApp WikiData WikiPedia WooCommerce WordPress
WorkDay XAMPP YouTrack YouTube ZenDesk ZipRecruiter ZoomInfo ZoomEye
"""
PRODUCT_NAMES = frozenset([*_NAMES.lower().split(), "k8s"])

FULL_NAMES = {"k8s": "kubernetes", "mongo": "mongodb", "postgre": "postgresql", "postgres": "postgresql"}
"""Other names of the same product, which mean nothing else, by the documentation of each: "PostgreSQL, often
simply Postgres" (wiki.postgresql.org), K8s (kubernetes.io), and MongoDB's shell, called ``mongo``."""

LONGEST = 4
"""Words that a name is split into at most."""
_ALSO_WORDS = """
adsense airtag appflow basecamp bereal bigtable bluesky callrail clickup codebuild commonmark deepmind drop
dropbox facetime factset firestore fullstory gitops greenhouse invision livechat loopback mastercard
onenote opensearch opentable openrouter pagespeed peoplesoft photoshop pinecone powerapps
powerpoint readme redhat redshift sharefile smartsheet snapchat snowflake statuspage streamyard teamwork
textmagic trustpilot typeform typescript uservoice webflow workday
"""
TWO_WORDS = PRODUCT_NAMES - frozenset(_ALSO_WORDS.lower().split())
"""The names that are meant also where their parts are separate words, such as "git hub". The parts of the
others, such as "click up", "read me" and "work day", often mean what they say."""


def joined(words: Sequence[str], names: Container[str] = PRODUCT_NAMES) -> list[tuple[int, int]]:
    """The spans (from, to) of two words or more that make one of ``names`` when they are joined. The longest
    counts, and none overlap.
    """
    found = []
    start = 0
    while start < len(words) - 1:
        for stop in range(min(start + LONGEST, len(words)), start + 1, -1):
            if "".join(words[start:stop]) in names:
                found.append((start, stop))
                start = stop - 1
                break
        start += 1
    return found
